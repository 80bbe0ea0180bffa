/**
 * Matches requests against a rule of a webhook or policy (L3): operation, group, version, resource with subresource, scope; and, where the
 * match policy is Equivalent, the other versions of the same resource.
 * Upstream: apiserver/pkg/admission/plugin/webhook/predicates/rules, generic/webhook.go, policy/matching (v1.36).
 */
import type { NamedRuleWithOperations } from '#api/gen/types/admissionregistration.v1'
import type { Frozen, GroupVersionKind, GroupVersionResource } from '#api/machinery/meta'
import type { AdmissionForm } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'

export type Rule = Frozen<NamedRuleWithOperations>

/** The resource and kind that a webhook or policy matched. */
export interface Invocation {
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
}

/** The parts of a request that rules compare. */
export interface RuleSubject {
  readonly operation: string
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
  readonly subresource: string
  /** For a Namespace its own name; '' for other cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
  /** The resource's versions, including its own. */
  readonly forms: readonly AdmissionForm[]
}

/** `namespace`: see requestNamespace. */
export function subjectOf({ operation, resource, kind, subresource, name, forms }: AdmissionAttributes, namespace: string): RuleSubject {
  return { operation, resource, kind, subresource, namespace, name, forms: forms?.all ?? [] }
}

/** The first rule that matches decides; undefined: none does. Rules are tried on the request's own resource first. */
export function matchRules(rules: readonly Rule[], matchPolicy: string | undefined, subject: RuleSubject): Invocation | undefined {
  for (const rule of rules) if (matches(rule, subject, subject.resource)) return { resource: subject.resource, kind: subject.kind }
  if (matchPolicy !== 'Equivalent') return undefined
  for (const rule of rules) {
    for (const form of subject.forms) {
      if (!isSame(form.resource, subject.resource) && matches(rule, subject, form.resource)) return { resource: form.resource, kind: form.kind }
    }
  }
  return undefined
}

function matches(rule: Rule, subject: RuleSubject, resource: GroupVersionResource): boolean {
  return (
    isInScope(rule.scope, subject, resource) &&
    holds(rule.operations, subject.operation) &&
    holds(rule.apiGroups, resource.group) &&
    holds(rule.apiVersions, resource.version) &&
    (rule.resources ?? []).some((text) => isResource(text, resource.resource, subject.subresource)) &&
    (!rule.resourceNames?.length || rule.resourceNames.includes(subject.name))
  )
}

function holds(items: readonly string[] | undefined, wanted: string): boolean {
  return items?.some((item) => item === '*' || item === wanted) ?? false
}

function isInScope(scope: string | undefined, { namespace }: RuleSubject, resource: GroupVersionResource): boolean {
  if (scope === undefined || scope === '*') return true
  const isCluster = namespace === '' || (resource.group === '' && resource.resource === 'namespaces')
  return scope === 'Cluster' ? isCluster : scope === 'Namespaced' && !isCluster
}

/** `pods`, `pods/status`, `pods/*`, `*`, `*\/*`, `*\/scale`. */
function isResource(text: string, resource: string, subresource: string): boolean {
  const slash = text.indexOf('/')
  const [wanted, sub] = slash < 0 ? [text, ''] : [text.slice(0, slash), text.slice(slash + 1)]
  return (wanted === '*' || wanted === resource) && (sub === '*' || sub === subresource)
}

function isSame(a: GroupVersionResource, b: GroupVersionResource): boolean {
  return a.resource === b.resource && a.version === b.version && a.group === b.group
}
