/**
 * Yields the policies to evaluate for a request, with bindings and parameters (L3), in order; and the errors of policies that cannot be evaluated.
 * Upstream: Dispatch of apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go and validating/dispatcher.go (v1.36).
 */
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Authorizer } from '../../authz/authorizer.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import type { AdmissionMetrics } from '../admissionMetrics.ts'
import { matchCriteria } from '../matching/criteria.ts'
import { type Invocation, subjectOf } from '../matching/rules.ts'
import { collectParams, type Param, paramKindOf } from './params.ts'
import type { BindingShape, PolicyHook, PolicyShape } from './policyIndex.ts'
import type { PolicyMetrics } from './policyMetrics.ts'

export interface PolicyDeps {
  readonly reader: ObjectReader
  readonly authorizers: readonly Authorizer[]
  readonly clock: Clock
  readonly metrics: AdmissionMetrics
  readonly policyMetrics: PolicyMetrics
}

/** A policy that could not be evaluated and has the failure policy Fail. */
export interface PolicyFault<P, B, E> {
  readonly hook: PolicyHook<P, B, E>
  readonly binding?: Frozen<B> | undefined
  readonly fault: string
}

export interface PolicyCall<P, B, E> {
  readonly hook: PolicyHook<P, B, E>
  readonly binding: Frozen<B>
  readonly invocation: Invocation
  readonly params: readonly Param[]
  readonly fault?: undefined
}

/** `namespace`: see requestNamespace. */
export async function* policyCalls<P extends PolicyShape, B extends BindingShape, E>(
  { reader }: PolicyDeps,
  hooks: readonly PolicyHook<P, B, E>[],
  attributes: AdmissionAttributes,
  namespace: string,
): AsyncGenerator<PolicyFault<P, B, E> | PolicyCall<P, B, E>> {
  const subject = subjectOf(attributes, namespace)
  for (const hook of hooks) {
    const spec = hook.policy.spec as Frozen<PolicyShape['spec']>
    let invocation: Invocation | undefined
    try {
      invocation = matchCriteria(hook.criteria, attributes, subject, reader)
      if (!invocation) continue
      if (spec.paramKind) paramKindOf(spec.paramKind, reader)
    } catch (error) {
      if (spec.failurePolicy !== 'Ignore') yield { hook, fault: `failed to configure policy: ${(error as Error).message}` }
      continue
    }
    for (const { binding, criteria } of hook.bindings) {
      try {
        if (criteria && !matchCriteria(criteria, attributes, subject, reader)) continue
        const { paramRef } = binding.spec as Frozen<BindingShape['spec']>
        const params = await collectParams(spec.paramKind, paramRef, subject.namespace, reader, attributes.cancellation)
        if (params.length > 0) yield { hook, binding, invocation, params }
      } catch (error) {
        if (spec.failurePolicy !== 'Ignore') yield { hook, binding, fault: `failed to configure binding: ${(error as Error).message}` }
      }
    }
  }
}
