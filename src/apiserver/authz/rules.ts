/**
 * What one policy rule allows, and whether rules cover others (L3, pure). Upstream: pkg/apis/rbac/v1/evaluation_helpers.go,
 * component-helpers/auth/rbac/validation/policy_comparator.go.
 */
import type { PolicyRule } from '#api/gen/types/rbac.v1'
import type { Frozen } from '#api/machinery/meta'
import type { AuthorizationAttributes } from './authorizer.ts'

type Rule = Frozen<PolicyRule>

export function ruleAllows(attributes: AuthorizationAttributes, rule: Rule): boolean {
  if (!matches(rule.verbs, attributes.verb)) return false
  if (!attributes.isResourceRequest) return (rule.nonResourceURLs ?? []).some((url) => urlMatches(url, attributes.path))
  return (
    matches(rule.apiGroups, attributes.apiGroup) &&
    resourceMatches(rule.resources ?? [], attributes.resource, attributes.subresource) &&
    (!rule.resourceNames?.length || rule.resourceNames.includes(attributes.name))
  )
}

/** What of `wanted` the `held` rules do not cover, broken down to single verbs, groups and resources; empty when all is covered. */
export function uncovered(held: readonly Rule[], wanted: readonly Rule[]): PolicyRule[] {
  return wanted.flatMap(breakdown).filter((part) => !held.some((rule) => covers(rule, part)))
}

/** As upstream prints a rule in the refusal of an escalation. */
export function printRule(rule: Rule): string {
  const list = (name: string, values: readonly string[] | undefined) =>
    values?.length ? [`${name}:[${values.map((value) => JSON.stringify(value)).join(' ')}]`] : []
  const parts = [
    ...list('APIGroups', rule.apiGroups),
    ...list('Resources', rule.resources),
    ...list('ResourceNames', rule.resourceNames),
    ...list('NonResourceURLs', rule.nonResourceURLs),
    ...list('Verbs', rule.verbs),
  ]
  return `{${parts.join(', ')}}`
}

function matches(allowed: readonly string[] | undefined, value: string): boolean {
  return allowed?.some((one) => one === '*' || one === value) ?? false
}

function urlMatches(allowed: string, path: string): boolean {
  return allowed === '*' || allowed === path || (allowed.endsWith('*') && path.startsWith(allowed.slice(0, -1)))
}

function resourceMatches(allowed: readonly string[], resource: string, subresource: string): boolean {
  const combined = subresource ? `${resource}/${subresource}` : resource
  return allowed.some((one) => one === '*' || one === combined || (subresource !== '' && one === `*/${subresource}`))
}

function breakdown(rule: Rule): PolicyRule[] {
  const parts: PolicyRule[] = []
  for (const verb of rule.verbs) {
    for (const group of rule.apiGroups ?? []) {
      for (const resource of rule.resources ?? []) {
        const part = { verbs: [verb], apiGroups: [group], resources: [resource] }
        if (!rule.resourceNames?.length) parts.push(part)
        else for (const name of rule.resourceNames) parts.push({ ...part, resourceNames: [name] })
      }
    }
    for (const url of rule.nonResourceURLs ?? []) parts.push({ verbs: [verb], nonResourceURLs: [url] })
  }
  return parts
}

function covers(rule: Rule, part: PolicyRule): boolean {
  if (!matches(rule.verbs, part.verbs[0] as string)) return false
  const url = part.nonResourceURLs?.[0]
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((held) => held === '*' || held === url || urlMatches(held, url))
  const [resource = '', subresource = ''] = (part.resources?.[0] ?? '').split('/')
  const name = part.resourceNames?.[0]
  return (
    matches(rule.apiGroups, part.apiGroups?.[0] ?? '') &&
    resourceMatches(rule.resources ?? [], resource, subresource) &&
    (!rule.resourceNames?.length || (name !== undefined && rule.resourceNames.includes(name)))
  )
}
