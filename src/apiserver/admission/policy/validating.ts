/**
 * Validating policies (L3): all matching policies are evaluated; a failure is denied, warned of or audited, by the binding's validationActions.
 * The first denial is the answer.
 * Upstream: apiserver/pkg/admission/plugin/policy/validating/dispatcher.go (v1.36).
 */
import type { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import { StatusError, type StatusReason } from '#api/machinery/status'
import type { AdmissionAttributes } from '../admission.ts'
import { refuse, requestNamespace } from '../attributes.ts'
import { RequestAuthorizer } from '../cel/requestAuthorizer.ts'
import { VersionedViews } from '../matching/versioned.ts'
import { type PolicyCall, type PolicyDeps, policyCalls } from './invocations.ts'
import type { PolicyIndex, PolicyKind } from './policyIndex.ts'
import { errorTypeOf } from './policyMetrics.ts'
import { policyNamespace } from './policyNamespace.ts'
import { type CompiledValidations, compileValidations, type Decision, evaluateValidations, type ValidationOutcome } from './validator.ts'

type Policy = ValidatingAdmissionPolicy
type Binding = ValidatingAdmissionPolicyBinding
type Call = PolicyCall<Policy, Binding, CompiledValidations>
export type ValidatingPolicyIndex = PolicyIndex<Policy, Binding, CompiledValidations>

const group = 'admissionregistration.k8s.io'
export const validatingPolicies: PolicyKind<Policy, CompiledValidations> = {
  policies: { group, resource: 'validatingadmissionpolicies' },
  bindings: { group, resource: 'validatingadmissionpolicybindings' },
  compile: compileValidations,
}

export function validateByPolicies(deps: PolicyDeps, index: ValidatingPolicyIndex, attributes: AdmissionAttributes): Promise<void> | undefined {
  const namespace = requestNamespace(attributes)
  const hooks = index.candidates(attributes, namespace)
  return hooks.length === 0 ? undefined : new Validation(deps, attributes, namespace).run(hooks)
}

interface Denial {
  readonly policy: string
  readonly binding: string | undefined
  readonly message: string
  readonly reason: string
}

const maxAnnotationLength = 10 * 1024

/** The evaluation of the policies for one request. */
class Validation {
  readonly #deps: PolicyDeps
  readonly #attributes: AdmissionAttributes
  readonly #namespace: string
  readonly #authorizer: RequestAuthorizer
  readonly #views: VersionedViews
  readonly #denials: Denial[] = []
  /** Audit annotations by policy and key; bindings may add several values. */
  readonly #annotations = new Map<string, Set<string>>()
  #hasFailureNote = false

  constructor(deps: PolicyDeps, attributes: AdmissionAttributes, namespace: string) {
    this.#deps = deps
    this.#attributes = attributes
    this.#namespace = namespace
    this.#authorizer = new RequestAuthorizer(deps.authorizers, attributes, namespace)
    this.#views = new VersionedViews(attributes)
  }

  async run(hooks: ReturnType<ValidatingPolicyIndex['candidates']>): Promise<void> {
    for await (const call of policyCalls(this.#deps, hooks, this.#attributes, this.#namespace)) {
      const policy = call.hook.policy.metadata.name ?? ''
      if (call.fault === undefined) await this.#evaluate(call, policy, call.binding.metadata.name ?? '')
      else this.#denials.push({ policy, binding: call.binding?.metadata.name, message: call.fault, reason: '' })
    }
    for (const [key, values] of this.#annotations) this.#attributes.annotate?.(key, [...values].join(', '))
    const [first] = this.#denials
    if (first) throw denialOf(first, this.#attributes)
  }

  async #evaluate({ hook, binding, invocation, params }: Call, policy: string, bindingName: string): Promise<void> {
    const objects = await this.#views.of(invocation.kind)
    const compiled = await hook.evaluator()
    const namespace = policyNamespace(this.#attributes, this.#deps.reader)
    for (const param of params) {
      const input = { attributes: this.#attributes, ...invocation, ...objects, params: param, namespace, authorizer: this.#authorizer }
      const startedMs = this.#deps.clock.monotonicMs()
      const outcome = await evaluateValidations(compiled, input)
      const seconds = (this.#deps.clock.monotonicMs() - startedMs) / 1000
      this.#countConditions(policy, outcome, seconds)
      for (const decision of outcome.decisions) this.#enforce(decision, binding, { policy, binding: bindingName, seconds })
      for (const { key, value } of outcome.annotations) this.#note(`${policy}/${key}`, value)
      for (const message of outcome.annotationFaults) {
        this.#denials.push({ policy, binding: bindingName, message, reason: '' })
        this.#deps.policyMetrics.validated(policy, bindingName, errorTypeOf(message), 'deny', seconds)
      }
    }
  }

  #countConditions(policy: string, { conditions }: ValidationOutcome, seconds: number): void {
    if (!conditions) return
    const owner = { name: policy, kind: 'policy', type: 'validate', operation: this.#attributes.operation } as const
    this.#deps.metrics.conditionsEvaluated(owner, seconds, conditions.failures)
  }

  #enforce(decision: Decision, { spec }: Frozen<Binding>, { policy, binding, seconds }: { policy: string; binding: string; seconds: number }): void {
    const { message, reason, error } = decision
    const errorType = errorTypeOf(error ?? (decision.denied ? message : undefined))
    const count = (action: 'allow' | 'deny' | 'audit' | 'warn') => this.#deps.policyMetrics.validated(policy, binding, errorType, action, seconds)
    if (!decision.denied) {
      if (error !== undefined) count('allow')
      return
    }
    for (const action of spec.validationActions) {
      if (action === 'Deny') {
        this.#denials.push({ policy, binding, message, reason })
        count('deny')
      } else if (action === 'Audit') {
        this.#noteFailure({ message, policy, binding, expressionIndex: decision.index, validationActions: spec.validationActions })
        count('audit')
      } else if (action === 'Warn') {
        this.#attributes.warn(`Validation failed for ValidatingAdmissionPolicy '${policy}' with binding '${binding}': ${message}`)
        count('warn')
      }
    }
  }

  /** Annotates a failure; only the first one, since the key is the same. */
  #noteFailure(failure: object): void {
    if (this.#hasFailureNote) return
    this.#hasFailureNote = true
    this.#attributes.annotate?.('validation.policy.admission.k8s.io/validation_failure', JSON.stringify([failure]))
  }

  #note(key: string, value: string): void {
    const values = this.#annotations.get(key) ?? new Set()
    this.#annotations.set(key, values.add(value.slice(0, maxAnnotationLength)))
  }
}

const codes: Readonly<Record<string, number>> = { Forbidden: 403, Unauthorized: 401, RequestEntityTooLarge: 413 }

function denialOf({ policy, binding, message, reason }: Denial, attributes: AdmissionAttributes): StatusError {
  const bound = binding === undefined ? '' : ` with binding '${binding}'`
  const text = `ValidatingAdmissionPolicy '${policy}'${bound} denied request: ${message}`
  const refusal = refuse(attributes, text)
  const given = (reason || 'Invalid') as StatusReason
  return new StatusError(given, refusal.message, { code: codes[given] ?? 422, details: { ...refusal.details, causes: [{ message: text }] } })
}
