/**
 * Evaluates one policy rule (L3, pure). Upstream: pkg/apis/rbac/v1/evaluation_helpers.go.
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

/** Prints a rule as upstream does in the refusal of an escalation. */
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
  return allowed === '*' || allowed === path || (allowed.endsWith('*') && path.startsWith(allowed.replace(/\*+$/, '')))
}

function resourceMatches(allowed: readonly string[], resource: string, subresource: string): boolean {
  const combined = subresource ? `${resource}/${subresource}` : resource
  return allowed.some((one) => one === '*' || one === combined || (subresource !== '' && one === `*/${subresource}`))
}
