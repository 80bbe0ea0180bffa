/**
 * The audit policy (L3): which requests are logged, and at which level. The first rule that matches decides.
 * Upstream: apiserver/pkg/audit/policy, pkg/apis/audit/validation (v1.36).
 */
import { decodeConfiguration } from '#api/configuration/decode'
import { anything, boolean, kind, list, struct, text } from '#api/configuration/schemas'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import type { RequestInfo, ServerRequest, UserInfo } from '../core/request.ts'
import { type AuditLevel, type AuditRule, type AuditStageName, auditLevels, auditStages } from './event.ts'

interface GroupResources {
  readonly group?: string
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
}

interface PolicyRule {
  readonly level?: string
  readonly users?: readonly string[]
  readonly userGroups?: readonly string[]
  readonly verbs?: readonly string[]
  readonly resources?: readonly GroupResources[]
  readonly namespaces?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly omitStages?: readonly string[]
  readonly omitManagedFields?: boolean
}

interface Policy {
  readonly rules?: readonly PolicyRule[]
  readonly omitStages?: readonly string[]
  readonly omitManagedFields?: boolean
}

export interface AuditPolicy {
  /** Undefined: the request is not logged. */
  ruleFor(request: Pick<ServerRequest, 'user' | 'info'>): AuditRule | undefined
}

const texts = list(text)
const policyKind = {
  kind: 'Policy',
  apiVersions: ['audit.k8s.io/v1'],
  schema: kind('Policy', {
    metadata: anything,
    rules: list(
      struct('PolicyRule', {
        ...{ level: text, users: texts, userGroups: texts, verbs: texts, namespaces: texts, nonResourceURLs: texts, omitStages: texts },
        resources: list(struct('GroupResources', { group: text, resources: texts, resourceNames: texts })),
        omitManagedFields: boolean,
      }),
    ),
    omitStages: texts,
    omitManagedFields: boolean,
  }),
}

/** @throws Error with every fault and its place */
export function parseAuditPolicy(content: string): AuditPolicy {
  const policy = decodeConfiguration(content, [policyKind]).value as Policy
  const faults = policyFaults(policy)
  const shown = faults.map(({ field, body }) => `${field}: ${body}`)
  if (shown.length > 0) throw new Error(shown.length > 1 ? `[${shown.join(', ')}]` : shown[0])
  const { rules = [] } = policy
  if (rules.length === 0) throw new Error('loaded illegal policy with 0 rules')
  const compiled = rules.map((rule) => ({ rule, outcome: outcomeOf(rule, policy) }))
  return {
    ruleFor({ user, info }) {
      for (const { rule, outcome } of compiled) if (matches(rule, user, info as RequestInfo)) return outcome
      return undefined
    },
  }
}

function outcomeOf(rule: PolicyRule, policy: Policy): AuditRule | undefined {
  if (rule.level === 'None') return undefined
  return {
    level: rule.level as Exclude<AuditLevel, 'None'>,
    omitStages: new Set([...(policy.omitStages ?? []), ...(rule.omitStages ?? [])] as AuditStageName[]),
    omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false,
  }
}

function matches(rule: PolicyRule, user: UserInfo | undefined, info: RequestInfo): boolean {
  const { users = [], userGroups = [], verbs = [], namespaces = [], resources = [], nonResourceURLs = [] } = rule
  if (users.length > 0 && !(user && users.includes(user.name))) return false
  if (userGroups.length > 0 && !user?.groups.some((group) => userGroups.includes(group))) return false
  if (verbs.length > 0 && !verbs.includes(info.verb)) return false
  if (namespaces.length > 0 || resources.length > 0) return matchesResource(namespaces, resources, info)
  if (nonResourceURLs.length > 0) return !info.isResourceRequest && nonResourceURLs.some((url) => matchesPath(url, info.path))
  return true
}

function matchesResource(namespaces: readonly string[], resources: readonly GroupResources[], info: RequestInfo): boolean {
  if (!info.isResourceRequest) return false
  if (namespaces.length > 0 && !namespaces.includes(info.namespace)) return false
  if (resources.length === 0) return true
  const full = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`
  return resources.some(({ group = '', resources: named = [], resourceNames = [] }) => {
    if (group !== info.apiGroup && group !== '*') return false
    if (named.length === 0) return true
    if (resourceNames.length > 0 && !resourceNames.includes(info.name)) return false
    return named.some((one) => one === full || one === '*' || (info.subresource !== '' && one === `*/${info.subresource}`) || one === `${info.resource}/*`)
  })
}

function matchesPath(url: string, path: string): boolean {
  return url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.replace(/\*+$/, '')))
}

function policyFaults({ omitStages, rules = [] }: Policy): FieldError[] {
  const path = FieldPath.of('rules')
  return [...stageFaults(omitStages, FieldPath.of('omitStages')), ...rules.flatMap((rule, i) => ruleFaults(rule, path.index(i)))]
}

function ruleFaults({ level = '', nonResourceURLs = [], resources = [], namespaces = [], omitStages }: PolicyRule, path: FieldPath): FieldError[] {
  const urls = path.child('nonResourceURLs')
  const both = nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)
  return [
    ...levelFaults(level, path.child('level')),
    ...nonResourceURLs.flatMap((url, i) => urlFaults(url, urls.index(i))),
    ...resources.flatMap((one) => resourceFaults(one, path.child('resources'))),
    ...stageFaults(omitStages, path.child('omitStages')),
    ...(both ? [fieldError.invalid(urls, nonResourceURLs, 'rules cannot apply to both regular resources and non-resource URLs')] : []),
  ]
}

function levelFaults(level: string, path: FieldPath): FieldError[] {
  if (level === '') return [fieldError.required(path)]
  return (auditLevels as readonly string[]).includes(level) ? [] : [fieldError.notSupported(path, level, auditLevels)]
}

function urlFaults(url: string, path: FieldPath): FieldError[] {
  if (url === '*') return []
  const faults: FieldError[] = []
  if (!url.startsWith('/')) faults.push(fieldError.invalid(path, url, "non-resource URL rules must begin with a '/' character"))
  if (url.slice(0, -1).includes('*')) faults.push(fieldError.invalid(path, url, "non-resource URL wildcards '*' must be the final character of the rule"))
  return faults
}

function resourceFaults({ group = '', resources = [], resourceNames = [] }: GroupResources, path: FieldPath): FieldError[] {
  const wrong = group === '' || group === '*' ? [] : nameIsDnsSubdomain(group, false)
  const nameless = resourceNames.length > 0 && resources.length === 0
  return [
    ...(wrong.length > 0 ? [fieldError.invalid(path.child('group'), group, wrong.join(','))] : []),
    ...(nameless ? [fieldError.invalid(path.child('resourceNames'), resourceNames, 'using resourceNames requires at least one resource')] : []),
  ]
}

function stageFaults(stages: readonly string[] = [], path: FieldPath): FieldError[] {
  const allowed: readonly string[] = auditStages
  return stages.flatMap((stage, i) => (allowed.includes(stage) ? [] : [fieldError.invalid(path.index(i), stage, `allowed stages are ${allowed.join(',')}`)]))
}
