/**
 * Matches requests against a FlowSchema's rules (L3): subjects, verbs, resources, namespaces, URLs. Pure.
 * Upstream: apiserver/pkg/util/flowcontrol/rule.go.
 */
import type { NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject } from '#api/gen/types/flowcontrol.v1'
import type { Frozen } from '#api/machinery/meta'
import type { RequestInfo, UserInfo } from '../core/request.ts'

const any = '*'
const serviceAccountPrefix = 'system:serviceaccount:'

export function matchesASubject(user: UserInfo, subjects: readonly Frozen<Subject>[]): boolean {
  return subjects.some((subject) => matchesSubject(user, subject))
}

function matchesSubject(user: UserInfo, { kind, user: named, group, serviceAccount }: Frozen<Subject>): boolean {
  if (kind === 'User') return named !== undefined && (named.name === any || named.name === user.name)
  if (kind === 'Group') return group !== undefined && (group.name === any || user.groups.includes(group.name))
  if (kind !== 'ServiceAccount' || !serviceAccount) return false
  const { namespace, name } = serviceAccount
  if (name === any) return user.name.startsWith(`${serviceAccountPrefix}${namespace}:`)
  return user.name === `${serviceAccountPrefix}${namespace}:${name}`
}

/** Matches all but the subjects, see {@link matchesASubject}. */
export function matchesARule({ resourceRules = [], nonResourceRules = [] }: Frozen<PolicyRulesWithSubjects>, info: RequestInfo): boolean {
  if (info.isResourceRequest) {
    for (const rule of resourceRules) if (matchesResourceRule(rule, info)) return true
  } else {
    for (const rule of nonResourceRules) if (contains(rule.verbs, info.verb) && matchesUrl(rule, info.path)) return true
  }
  return false
}

function matchesResourceRule({ verbs, apiGroups, resources, clusterScope = false, namespaces = [] }: Frozen<ResourcePolicyRule>, info: RequestInfo): boolean {
  if (!contains(verbs, info.verb) || !contains(apiGroups, info.apiGroup)) return false
  if (!isWildcard(resources) && !resources.includes(info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`)) return false
  return info.namespace === '' ? clusterScope : contains(namespaces, info.namespace)
}

function matchesUrl({ nonResourceURLs }: Frozen<NonResourcePolicyRule>, path: string): boolean {
  return nonResourceURLs.some((url) => {
    if (url === any || url === path) return true
    const prefix = url.endsWith(any) ? url.slice(0, -1) : url
    return path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
  })
}

/** A list with the wildcard has no other member. */
function isWildcard(list: readonly string[]): boolean {
  return list.length === 1 && list[0] === any
}

function contains(list: readonly string[], value: string): boolean {
  return isWildcard(list) || list.includes(value)
}
