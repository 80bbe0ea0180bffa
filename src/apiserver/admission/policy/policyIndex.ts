/**
 * The policies of one kind with their bindings (L3), compiled when a request first matches them; which of them can be about a kind of request is worked out once
 * and kept. A policy without a binding does nothing.
 * Upstream: apiserver/pkg/admission/plugin/policy/generic/policy_source.go (v1.36).
 */
import type { MatchResources, ParamKind, ParamRef } from '#api/gen/types/admissionregistration.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { AdmissionForms, ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { type OnDemand, onDemand } from '../cel/onDemand.ts'
import { type Criteria, couldMatch, criteriaOf } from '../matching/criteria.ts'
import { subjectOf } from '../matching/rules.ts'

/** The common fields of both kinds of policies. */
export interface PolicyShape extends KubeObject {
  readonly spec: {
    readonly failurePolicy?: string | undefined
    readonly paramKind?: ParamKind | undefined
    readonly matchConstraints?: MatchResources | undefined
  }
}

/** The common fields of both kinds of bindings. */
export interface BindingShape extends KubeObject {
  readonly spec: { readonly policyName?: string | undefined; readonly paramRef?: ParamRef | undefined; readonly matchResources?: MatchResources | undefined }
}

export interface BoundBinding<B> {
  readonly binding: Frozen<B>
  /** Undefined: the binding does not narrow the policy's matches. */
  readonly criteria: Criteria | undefined
}

export interface PolicyHook<P, B, E> {
  readonly policy: Frozen<P>
  readonly criteria: Criteria
  readonly evaluator: OnDemand<E>
  readonly bindings: readonly BoundBinding<B>[]
}

interface ResourceName {
  readonly group: string
  readonly resource: string
}

/** The resources of a kind of policies, and their compiler. */
export interface PolicyKind<P, E> {
  readonly policies: ResourceName
  readonly bindings: ResourceName
  compile(policy: Frozen<P>): E
}

interface Kept<P, B, E> {
  readonly forms: AdmissionForms | undefined
  readonly hooks: readonly PolicyHook<P, B, E>[]
}

/** Kinds of requests whose candidates are cached. */
const maxKept = 4096

export class PolicyIndex<P extends PolicyShape, B extends BindingShape, E extends object> {
  readonly #reader: ObjectReader
  readonly #kind: PolicyKind<P, E>
  /** Policies that have not changed need not be compiled again. */
  #compiled = new Map<Frozen<P>, OnDemand<E>>()
  #hooks: readonly PolicyHook<P, B, E>[] = []
  readonly #kept = new Map<string, Kept<P, B, E>>()
  #isOutdated = true

  constructor(reader: ObjectReader, kind: PolicyKind<P, E>) {
    this.#reader = reader
    this.#kind = kind
    for (const resource of [kind.policies, kind.bindings]) {
      reader.onChange<KubeObject>(resource, () => {
        this.#isOutdated = true
      })
    }
  }

  get isEmpty(): boolean {
    return this.#current().length === 0
  }

  /** Policies whose rules may match the request. `namespace`: see requestNamespace. */
  candidates(attributes: AdmissionAttributes, namespace: string): readonly PolicyHook<P, B, E>[] {
    const all = this.#current()
    const { operation, resource, subresource, forms } = attributes
    const key = `${operation} ${resource.group}/${resource.version}/${resource.resource}/${subresource} ${namespace === '' ? '' : 'namespaced'}`
    const known = this.#kept.get(key)
    if (known && known.forms === forms) return known.hooks
    const subject = subjectOf(attributes, namespace)
    const hooks = all.filter(({ criteria }) => couldMatch(criteria, subject))
    // Resources are added and removed, too.
    if (this.#kept.size >= maxKept) this.#kept.clear()
    this.#kept.set(key, { forms, hooks })
    return hooks
  }

  #current(): readonly PolicyHook<P, B, E>[] {
    if (this.#isOutdated) this.#rebuild()
    return this.#hooks
  }

  #rebuild(): void {
    this.#isOutdated = false
    const bound = new Map<string, BoundBinding<B>[]>()
    for (const binding of sorted(this.#reader.list<B>(this.#kind.bindings))) {
      const { policyName = '', matchResources } = binding.spec as Frozen<BindingShape['spec']>
      bound.set(policyName, [...(bound.get(policyName) ?? []), { binding, criteria: criteriaOf(matchResources) }])
    }
    const compiled = new Map<Frozen<P>, OnDemand<E>>()
    const hooks: PolicyHook<P, B, E>[] = []
    for (const policy of sorted(this.#reader.list<P>(this.#kind.policies))) {
      const bindings = bound.get(policy.metadata.name ?? '')
      const criteria = criteriaOf((policy.spec as Frozen<PolicyShape['spec']>).matchConstraints)
      if (!bindings || !criteria) continue
      const evaluator = this.#compiled.get(policy) ?? onDemand(policy, () => this.#kind.compile(policy))
      compiled.set(policy, evaluator)
      hooks.push({ policy, criteria, evaluator, bindings })
    }
    this.#compiled = compiled
    this.#hooks = hooks
    this.#kept.clear()
  }
}

function sorted<T extends KubeObject>(objects: readonly Frozen<T>[]): readonly Frozen<T>[] {
  return [...objects].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
}
