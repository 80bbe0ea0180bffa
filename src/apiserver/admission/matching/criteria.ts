/**
 * The match resources of policies and bindings (L3): selectors, resourceRules and excludeResourceRules.
 * Upstream: apiserver/pkg/admission/plugin/policy/matching/matching.go (v1.36).
 */
import type { MatchResources } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { type Invocation, matchRules, type RuleSubject } from './rules.ts'
import { type Selectors, select, selectorsOf } from './selectors.ts'

export interface Criteria {
  readonly resources: Frozen<MatchResources>
  readonly selectors: Selectors
}

export function criteriaOf(resources: Frozen<MatchResources> | undefined): Criteria | undefined {
  return resources && { resources, selectors: selectorsOf(resources) }
}

/** Whether requests of this kind can match at all, for any object name. */
export function couldMatch({ resources: { resourceRules, matchPolicy } }: Criteria, subject: RuleSubject): boolean {
  if (!resourceRules?.length) return true
  const anyName = resourceRules.map(({ resourceNames: _resourceNames, ...rule }) => rule)
  return matchRules(anyName, matchPolicy, subject) !== undefined
}

/** The matched resource; undefined: no match. @throws StatusError NotFound when the namespace whose labels count is missing */
export function matchCriteria(
  { resources, selectors }: Criteria,
  attributes: AdmissionAttributes,
  subject: RuleSubject,
  reader: ObjectReader,
): Invocation | undefined {
  const { matchPolicy, excludeResourceRules = [], resourceRules = [] } = resources
  const selected = select(selectors, attributes as AdmissionAttributes & { readonly object?: undefined }, subject.namespace, reader)
  if (selected === false || matchRules(excludeResourceRules, matchPolicy, subject)) return undefined
  const invocation = resourceRules.length === 0 ? { resource: subject.resource, kind: subject.kind } : matchRules(resourceRules, matchPolicy, subject)
  if (invocation && selected !== true) throw selected
  return invocation
}
