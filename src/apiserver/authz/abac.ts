/**
 * Attribute-based access control (L3): a file with one policy per line, read at start; a request that one of them matches is allowed.
 * Upstream: pkg/auth/authorizer/abac, pkg/apis/abac (v0 and v1beta1).
 */
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer, PolicyRuleInfo } from './authorizer.ts'

export interface AbacPolicy {
  readonly user: string
  readonly group: string
  readonly readonly: boolean
  readonly apiGroup: string
  readonly resource: string
  readonly namespace: string
  readonly nonResourcePath: string
}

const authenticated = 'system:authenticated'
const currentVersion = 'abac.authorization.kubernetes.io/v1beta1'

/**
 * @param file its name, for error messages
 * @throws Error that names the line with the first fault
 */
export function parseAbacPolicies(content: string, file: string): AbacPolicy[] {
  return content.split('\n').flatMap((line, at) => {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) return []
    try {
      return [policyOf(JSON.parse(text))]
    } catch (error) {
      throw new Error(`error reading policy file ${file}, line ${at + 1}: ${line}: ${(error as Error).message}`)
    }
  })
}

/** Lines of v0 have neither an apiVersion nor a kind; a field that is missing there matches everything. */
function policyOf(value: unknown): AbacPolicy {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('a policy is a JSON object')
  const { apiVersion, kind, spec } = value as { readonly apiVersion?: unknown; readonly kind?: unknown; readonly spec?: unknown }
  if (apiVersion === currentVersion && kind === 'Policy') return forAuthenticated(fieldsOf(spec ?? {}))
  const old = fieldsOf(value)
  const isForAll = old.user === '' && old.group === ''
  return forAuthenticated({
    ...old,
    ...(isForAll ? { group: authenticated } : {}),
    namespace: old.namespace || '*',
    resource: old.resource || '*',
    apiGroup: '*',
    nonResourcePath: old.namespace === '' && old.resource === '' ? '*' : '',
  })
}

function fieldsOf(value: unknown): AbacPolicy {
  const given = value as Readonly<Record<string, unknown>>
  const text = (name: string): string => {
    const found = given[name] ?? ''
    if (typeof found !== 'string') throw new Error(`json: cannot unmarshal ${typeof found} into Go struct field PolicySpec.${name} of type string`)
    return found
  }
  const readOnly = given.readonly ?? false
  if (typeof readOnly !== 'boolean') throw new Error(`json: cannot unmarshal ${typeof readOnly} into Go struct field PolicySpec.readonly of type bool`)
  return {
    user: text('user'),
    group: text('group'),
    readonly: readOnly,
    apiGroup: text('apiGroup'),
    resource: text('resource'),
    namespace: text('namespace'),
    nonResourcePath: text('nonResourcePath'),
  }
}

/** A star stands for all authenticated users. */
function forAuthenticated(policy: AbacPolicy): AbacPolicy {
  return policy.user === '*' || policy.group === '*' ? { ...policy, user: '', group: authenticated } : policy
}

const allowed: AuthorizationDecision = { decision: 'allow', reason: '' }
const unmatched: AuthorizationDecision = { decision: 'noOpinion', reason: 'No policy matched.' }

export function abacAuthorizer(policies: readonly AbacPolicy[]): Authorizer {
  return {
    name: 'ABAC',
    authorize: (attributes) => (policies.some((policy) => matches(policy, attributes)) ? allowed : unmatched),
    rulesFor(user, namespace) {
      const own = policies.filter((policy) => subjectMatches(policy, user) && (policy.namespace === '*' || policy.namespace === namespace))
      return { rules: own.flatMap(rulesOf), incomplete: false }
    },
  }
}

function matches(policy: AbacPolicy, attributes: AuthorizationAttributes): boolean {
  if (!subjectMatches(policy, attributes.user) || (policy.readonly && !readVerbs.has(attributes.verb))) return false
  if (!attributes.isResourceRequest) return pathMatches(policy.nonResourcePath, attributes.path)
  const { namespace, resource, apiGroup } = policy
  return isOr(namespace, attributes.namespace) && isOr(resource, attributes.resource) && isOr(apiGroup, attributes.apiGroup)
}

const isOr = (allows: string, value: string): boolean => allows === '*' || allows === value

const readVerbs: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

/** If a policy names both user and group, both must match. */
function subjectMatches({ user, group }: AbacPolicy, { name, groups }: UserInfo): boolean {
  if (user === '' && group === '') return false
  return (user === '' || user === name) && (group === '' || groups.includes(group))
}

function pathMatches(pattern: string, path: string): boolean {
  return isOr(pattern, path) || (pattern.endsWith('*') && path.startsWith(pattern.replace(/\*+$/, '')))
}

function rulesOf({ readonly, apiGroup, resource, nonResourcePath }: AbacPolicy): PolicyRuleInfo[] {
  const verbs = readonly ? [...readVerbs] : ['*']
  return [
    ...(resource === '' ? [] : [{ verbs, apiGroups: [apiGroup], resources: [resource] }]),
    ...(nonResourcePath === '' ? [] : [{ verbs, nonResourceURLs: [nonResourcePath] }]),
  ]
}
