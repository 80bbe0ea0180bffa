/**
 * Mutating policies (L3): all matching policies change the object in turn, each sees the changes of those before. A policy that fails refuses the
 * request, unless its failure policy is Ignore.
 * Upstream: apiserver/pkg/admission/plugin/policy/{mutating,generic}/..dispatcher.go (v1.36).
 */
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding } from '#api/gen/types/admissionregistration.v1'
import type { Namespace } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { StatusError, type StatusReason } from '#api/machinery/status'
import type { AdmissionAttributes } from '../admission.ts'
import { refuse, requestNamespace } from '../attributes.ts'
import type { AdmissionInput } from '../cel/activation.ts'
import { evaluateMatchConditions, type MatchConditions } from '../cel/matchConditions.ts'
import { RequestAuthorizer } from '../cel/requestAuthorizer.ts'
import { MutableObject } from '../matching/versioned.ts'
import { askForSecondRound, type RoundMemory, roundMemory } from '../reinvocation.ts'
import { type PolicyCall, type PolicyDeps, policyCalls } from './invocations.ts'
import { type CompiledMutation, type CompiledMutations, compileMutations, evaluateMutation } from './mutator.ts'
import type { Param } from './params.ts'
import { MutationFault, patchedBy } from './patchers.ts'
import type { PolicyIndex, PolicyKind } from './policyIndex.ts'
import { errorTypeOf } from './policyMetrics.ts'
import { policyNamespace } from './policyNamespace.ts'

type Policy = MutatingAdmissionPolicy
type Binding = MutatingAdmissionPolicyBinding
type Call = PolicyCall<Policy, Binding, CompiledMutations>
export type MutatingPolicyIndex = PolicyIndex<Policy, Binding, CompiledMutations>

const group = 'admissionregistration.k8s.io'
export const mutatingPolicies: PolicyKind<Policy, CompiledMutations> = {
  policies: { group, resource: 'mutatingadmissionpolicies' },
  bindings: { group, resource: 'mutatingadmissionpolicybindings' },
  compile: compileMutations,
}

export function mutateByPolicies(deps: PolicyDeps, index: MutatingPolicyIndex, attributes: AdmissionAttributes): Promise<void> | undefined {
  const namespace = requestNamespace(attributes)
  const hooks = index.candidates(attributes, namespace)
  return hooks.length === 0 ? undefined : new MutationRun(deps, attributes, namespace).run(hooks)
}

interface Failure {
  readonly text: string
  readonly reason: StatusReason
}

interface Mutating {
  readonly compiled: CompiledMutations
  readonly mutation: CompiledMutation
}

/** One request on its way past the policies. */
class MutationRun {
  readonly #deps: PolicyDeps
  readonly #attributes: AdmissionAttributes
  readonly #namespace: string
  readonly #authorizer: RequestAuthorizer
  readonly #memory: RoundMemory
  readonly #object: MutableObject
  readonly #failures: Failure[] = []

  constructor(deps: PolicyDeps, attributes: AdmissionAttributes, namespace: string) {
    this.#deps = deps
    this.#attributes = attributes
    this.#namespace = namespace
    this.#authorizer = new RequestAuthorizer(deps.authorizers, attributes, namespace)
    this.#memory = roundMemory(attributes, 'MutatingAdmissionPolicy')
    this.#object = new MutableObject(attributes)
  }

  async run(hooks: ReturnType<MutatingPolicyIndex['candidates']>): Promise<void> {
    try {
      // All matching policies are found before any of them changes the object.
      const calls: Call[] = []
      for await (const call of policyCalls(this.#deps, hooks, this.#attributes, this.#namespace)) {
        const { name = '' } = call.hook.policy.metadata
        if (call.fault === undefined) calls.push(call)
        else this.#failures.push({ text: denied(name, call.binding?.metadata.name, call.fault), reason: 'Forbidden' })
      }
      const namespace = calls.length > 0 ? policyNamespace(this.#attributes, this.#deps.reader) : undefined
      for (const call of calls) for (const param of call.params) await this.#invoke(call, param, namespace)
      await this.#object.finish()
    } finally {
      this.#memory.keep(this.#attributes.object)
    }
    if (this.#failures.length > 0) throw refusal(this.#failures, this.#attributes)
  }

  async #invoke(call: Call, params: Param, namespace: Frozen<Namespace> | undefined): Promise<void> {
    const { hook, binding, invocation } = call
    const { policy } = hook
    const compiled = await hook.evaluator()
    const input = async (): Promise<AdmissionInput> => ({
      attributes: this.#attributes,
      ...invocation,
      ...(await this.#object.as(invocation.kind)),
      params,
      namespace,
      authorizer: this.#authorizer,
    })
    if (compiled.conditions && !(await this.#matches(call, compiled.conditions, await input()))) return
    const key = JSON.stringify([policy.metadata.name, binding.metadata.name, params?.metadata.namespace, params?.metadata.name])
    // The second round calls only policies that the first round called and after which the object changed.
    if (this.#memory.isSecondRound && !this.#memory.isDue(key)) return
    const before = this.#object.current
    for (const mutation of compiled.mutations) await this.#mutate(call, { compiled, mutation }, await input())
    if (!semanticEqual(before, this.#object.current)) askForSecondRound(this.#attributes, this.#memory)
    if (policy.spec.reinvocationPolicy === 'IfNeeded') this.#memory.invoked(key)
  }

  async #matches({ hook, binding }: Call, conditions: MatchConditions, input: AdmissionInput): Promise<boolean> {
    const { clock, metrics } = this.#deps
    const startedMs = clock.monotonicMs()
    const outcome = await evaluateMatchConditions(conditions, input, hook.policy.spec.failurePolicy ?? 'Fail')
    const owner = { name: hook.policy.metadata.name ?? '', kind: 'policy', type: 'validate', operation: this.#attributes.operation } as const
    metrics.conditionsEvaluated(owner, (clock.monotonicMs() - startedMs) / 1000, outcome.failures)
    if (outcome.error !== undefined) this.#fail(hook.policy, binding, outcome.error)
    return outcome.matches
  }

  async #mutate({ hook, binding }: Call, { compiled, mutation }: Mutating, input: AdmissionInput): Promise<void> {
    const { clock, policyMetrics } = this.#deps
    const { object } = input
    if (!object) return
    const startedMs = clock.monotonicMs()
    let fault: string | undefined
    try {
      const made = patchedBy(mutation.patchType, await evaluateMutation(compiled, mutation, input), object, this.#attributes)
      if (made !== object) this.#object.replace(made as KubeObject)
    } catch (error) {
      if (!(error instanceof MutationFault)) throw error
      fault = error.message
      this.#fail(hook.policy, binding, fault)
    }
    const names = [hook.policy.metadata.name ?? '', binding.metadata.name ?? ''] as const
    policyMetrics.mutated(...names, errorTypeOf(fault), (clock.monotonicMs() - startedMs) / 1000)
  }

  #fail({ metadata, spec }: Frozen<Policy>, binding: Frozen<Binding>, fault: string): void {
    if (spec.failurePolicy === 'Ignore') return
    this.#failures.push({ text: denied(metadata.name ?? '', binding.metadata.name, fault), reason: 'Invalid' })
  }
}

function denied(policy: string, binding: string | undefined, fault: string): string {
  return binding === undefined
    ? `policy ${JSON.stringify(policy)} denied request: ${fault}`
    : `policy '${policy}' with binding '${binding}' denied request: ${fault}`
}

/** The refusal with the first failure's text and reason; the code is always 403. */
function refusal(failures: readonly Failure[], attributes: AdmissionAttributes): StatusError {
  const [first] = failures as [Failure]
  const { details } = refuse(attributes, '')
  return new StatusError(first.reason, first.text, { code: 403, details: { ...details, causes: failures.map(({ text }) => ({ message: text })) } })
}
