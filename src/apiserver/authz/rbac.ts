/**
 * Role-based access control (L3): bindings indexed by subject and kept up to date from the caches, so a decision looks only at
 * the caller's own bindings. Upstream: plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go (v1.36).
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject } from '#api/gen/types/rbac.v1'
import type { Frozen } from '#api/machinery/meta'
import type { ObjectReader } from '../core/objectReader.ts'
import { aggregateReasons } from '../core/reasons.ts'
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes, Authorizer, NearestRules } from './authorizer.ts'
import { type Decided, DecisionMemo } from './decisionMemo.ts'
import { type Lack, lackOf } from './nearestRules.ts'
import { ruleAllows } from './rules.ts'

type Binding = Frozen<RoleBinding> | Frozen<ClusterRoleBinding>

export interface GrantedRules {
  readonly rules: readonly Frozen<PolicyRule>[]
  /** Errors of bindings whose role does not exist. */
  readonly errors: readonly string[]
}

export interface RbacAuthorizer extends Authorizer {
  /** All rules that RBAC grants the user in the namespace; an empty namespace means the rules that apply in the whole cluster. */
  granted(user: UserInfo, namespace: string): GrantedRules
  /** The rules of the role that a binding refers to. @returns undefined when the role does not exist. */
  rulesOf(ref: Frozen<RoleRef>, namespace: string): readonly Frozen<PolicyRule>[] | undefined
}

const group = 'rbac.authorization.k8s.io'
const rbacResources = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'] as const

export function rbacAuthorizer(reader: ObjectReader): RbacAuthorizer {
  const bindings = createBindingIndex(reader)
  const reasons = createReasons()
  const memo = new DecisionMemo()
  for (const resource of rbacResources) reader.onChange({ group, resource }, () => memo.forget())
  const rulesOf: RbacAuthorizer['rulesOf'] = (ref, namespace) => {
    const role =
      ref.kind === 'Role'
        ? reader.get<Role>({ group, resource: 'roles' }, namespace, ref.name)
        : reader.get<ClusterRole>({ group, resource: 'clusterroles' }, '', ref.name)
    return role && (role.rules ?? [])
  }
  /** Visits the caller's rules until `visit` returns false. */
  const visitRules = (
    user: UserInfo,
    namespace: string,
    visit: (rule: Frozen<PolicyRule>, binding: Binding, subject: string) => boolean,
    fail: (error: string) => void,
  ) => {
    const scopes = namespace === '' ? clusterWide : ['', namespace]
    for (const subject of subjectsOf(user)) {
      for (const scope of scopes) {
        for (const binding of bindings.of(subject, scope)) {
          const rules = rulesOf(binding.roleRef, binding.metadata.namespace ?? '')
          if (!rules) fail(`${binding.roleRef.kind.toLowerCase()}.${group} ${JSON.stringify(binding.roleRef.name)} not found`)
          for (const rule of rules ?? []) if (!visit(rule, binding, subject)) return
        }
      }
    }
  }
  const granted: RbacAuthorizer['granted'] = (user, namespace) => {
    const rules: Frozen<PolicyRule>[] = []
    const errors: string[] = []
    visitRules(
      user,
      namespace,
      (rule) => rules.push(rule) > 0,
      (error) => errors.push(error),
    )
    return { rules, errors }
  }
  const decide = (attributes: AuthorizationAttributes): Decided => {
    let allowedBy: string | undefined
    let isOfName = false
    const errors: string[] = []
    const namespace = attributes.isResourceRequest ? attributes.namespace : ''
    visitRules(
      attributes.user,
      namespace,
      (rule, binding, subject) => {
        isOfName ||= (rule.resourceNames?.length ?? 0) > 0 && ruleAllows(attributes, { ...rule, resourceNames: [] })
        if (ruleAllows(attributes, rule)) allowedBy = reasons.of(binding, subject)
        return allowedBy === undefined
      },
      (error) => errors.push(error),
    )
    if (allowedBy !== undefined) return { decision: { decision: 'allow', reason: allowedBy }, isOfName }
    const reason = errors.length > 0 ? `RBAC: ${aggregateReasons(errors)}` : ''
    return { decision: { decision: 'noOpinion', reason }, isOfName }
  }
  const nearest = (attributes: AuthorizationAttributes): NearestRules => {
    let found: (Lack & { readonly binding: Binding }) | undefined
    const consider = (lack: Lack | undefined, binding: Binding) => {
      if (lack && lack.distance < (found?.distance ?? Number.POSITIVE_INFINITY)) found = { ...lack, binding }
    }
    const named = new Set<Binding>()
    const { user, namespace } = attributes
    visitRules(
      user,
      attributes.isResourceRequest ? namespace : '',
      (rule, binding) => {
        named.add(binding)
        consider(lackOf(attributes, rule), binding)
        return true
      },
      () => {},
    )
    // A binding in another namespace explains more than a rule that lacks the verb.
    for (const binding of attributes.isResourceRequest ? elsewhere(user, namespace) : []) {
      named.add(binding)
      const rules = rulesOf(binding.roleRef, binding.metadata.namespace ?? '') ?? []
      if (rules.some((rule) => ruleAllows(attributes, rule)))
        consider({ text: `grants it only in namespace ${binding.metadata.namespace}`, distance: 0 }, binding)
    }
    return { bindings: named.size, nearest: found && `${bindingLabel(found.binding)} ${found.text}` }
  }
  /** Bindings in other namespaces that name the user. Those of a group may be unknown to its members. */
  function* elsewhere(user: UserInfo, namespace: string): Generator<Binding> {
    const scopes = bindings.scopes(mostScopes).filter((scope) => scope !== '' && scope !== namespace)
    for (const scope of scopes) yield* bindings.of(userSubject(user), scope)
  }
  return {
    name: 'RBAC',
    granted,
    rulesOf,
    nearest,
    authorize: (attributes) => memo.decide(attributes, decide),
    rulesFor(user, namespace) {
      const { rules, errors } = granted(user, namespace)
      return { rules, incomplete: false, ...(errors.length > 0 ? { error: errors.join(', ') } : {}) }
    },
  }
}

const clusterWide: readonly string[] = ['']
/** In how many namespaces an explanation looks for bindings. */
const mostScopes = 500

function bindingLabel({ metadata: { name, namespace }, roleRef }: Binding): string {
  const binding = namespace ? `RoleBinding ${namespace}/${name}` : `ClusterRoleBinding ${name}`
  return `${binding} (${roleRef.kind} ${roleRef.name})`
}

/** The index's keys: 'User:name' and 'Group:name'; service accounts are users by their full name. */
const userSubject = ({ name }: UserInfo): string => `User:${name}`

function subjectsOf(user: UserInfo): string[] {
  return [userSubject(user), ...user.groups.map((name) => `Group:${name}`)]
}

function keyOf(subject: Frozen<Subject>, bindingNamespace: string): string {
  if (subject.kind !== 'ServiceAccount') return `${subject.kind}:${subject.name}`
  return `User:system:serviceaccount:${subject.namespace || bindingNamespace}:${subject.name}`
}

/** Caches the reason text by binding and subject; bindings are frozen, and a changed one is another object. */
function createReasons() {
  const made = new WeakMap<Binding, Map<string, string>>()
  return {
    of(binding: Binding, subject: string): string {
      const known = made.get(binding) ?? new Map<string, string>()
      made.set(binding, known)
      let reason = known.get(subject)
      if (reason === undefined) {
        reason = `RBAC: allowed by ${describe(binding, subject)}`
        known.set(subject, reason)
      }
      return reason
    },
  }
}

function describe(binding: Binding, subject: string): string {
  const { name = '', namespace } = binding.metadata
  const what = namespace ? `RoleBinding ${JSON.stringify(`${name}/${namespace}`)}` : `ClusterRoleBinding ${JSON.stringify(name)}`
  const role = `${binding.roleRef.kind} ${JSON.stringify(binding.roleRef.name)}`
  const meant = binding.subjects?.find((one) => keyOf(one, namespace ?? '') === subject)
  const who =
    meant?.kind === 'ServiceAccount'
      ? `ServiceAccount ${JSON.stringify(`${meant.name}/${meant.namespace || (namespace ?? '')}`)}`
      : `${meant?.kind ?? ''} ${JSON.stringify(meant?.name ?? '')}`
  return `${what} of ${role} to ${who}`
}

/** Bindings by namespace ('' for cluster-wide ones), then by subject, then by name. */
function createBindingIndex(reader: ObjectReader): {
  of(subject: string, scope: string): Iterable<Binding>
  /** The namespaces that have bindings; '' for cluster-wide ones. */
  scopes(most: number): string[]
} {
  const index = new Map<string, Map<string, Map<string, Binding>>>()
  const keysOf = (binding: Binding) => new Set((binding.subjects ?? []).map((subject) => keyOf(subject, binding.metadata.namespace ?? '')))
  const add = (binding: Binding) => {
    const { namespace = '', name = '' } = binding.metadata
    const bySubject = index.get(namespace) ?? new Map<string, Map<string, Binding>>()
    index.set(namespace, bySubject)
    for (const key of keysOf(binding)) bySubject.set(key, (bySubject.get(key) ?? new Map<string, Binding>()).set(name, binding))
  }
  const remove = (binding: Binding) => {
    const { namespace = '', name = '' } = binding.metadata
    const bySubject = index.get(namespace)
    for (const key of keysOf(binding)) {
      const byName = bySubject?.get(key)
      byName?.delete(name)
      if (byName?.size === 0) bySubject?.delete(key)
    }
    if (bySubject?.size === 0) index.delete(namespace)
  }
  // The indexed bindings: an update must remove exactly what was added.
  const current = new Map<string, Binding>()
  const replace = (binding: Binding, present: boolean) => {
    const id = `${binding.metadata.namespace ?? ''}/${binding.metadata.name ?? ''}`
    const before = current.get(id)
    if (before) remove(before)
    if (present) {
      current.set(id, binding)
      add(binding)
    } else current.delete(id)
  }
  for (const resource of ['clusterrolebindings', 'rolebindings']) {
    reader.onChange<RoleBinding>({ group, resource }, ({ type, object }) => replace(object, type !== 'DELETED'))
    for (const binding of reader.list<RoleBinding>({ group, resource })) replace(binding, true)
  }
  return {
    of: (subject, scope) => index.get(scope)?.get(subject)?.values() ?? [],
    scopes: (most) => [...index.keys()].slice(0, most),
  }
}
