/**
 * Prevents escalation of privileges (L3): creating or changing a role or a binding needs its permissions, or the verbs escalate and bind.
 * Upstream keeps this in the registry (pkg/registry/rbac/{clusterrole,role,…}/policybased); here it is the first validating plugin.
 */
import type { ClusterRole, PolicyRule, RoleBinding } from '#api/gen/types/rbac.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import { append } from '#base/extremes'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import { type Coverage, coverage, RulesTooComplex } from '../../authz/coverage.ts'
import type { RbacAuthorizer } from '../../authz/rbac.ts'
import { printRule } from '../../authz/rules.ts'
import { authorize } from '../../authz/union.ts'
import { deepEqual } from '../../core/sameObject.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { refuse } from '../attributes.ts'

const group = 'rbac.authorization.k8s.io'

export function escalation(rbac: RbacAuthorizer, authorizers: readonly Authorizer[]): AdmissionPlugin {
  const may = async (attributes: AdmissionAttributes, wanted: Partial<AuthorizationAttributes>) => {
    const { user, namespace, resource } = attributes
    const base = { user, namespace, apiGroup: group, apiVersion: '*', resource: resource.resource, subresource: '', path: '', name: '', verb: '' }
    return (await authorize(authorizers, { ...base, isResourceRequest: true, ...wanted })).decision === 'allow'
  }
  const holds = async ({ user, namespace }: AdmissionAttributes, rules: readonly Frozen<PolicyRule>[]) =>
    (await coverage(rbac.granted(user, namespace).rules, rules)).missing.length === 0
  /** @throws Status Forbidden when the user does not hold all of `rules`. */
  const mustHold = async (attributes: AdmissionAttributes, rules: readonly Frozen<PolicyRule>[]) => {
    const { rules: held, errors } = rbac.granted(attributes.user, attributes.namespace)
    const { missing, isCutShort } = await comparable(attributes, coverage(held, rules))
    if (missing.length === 0 && !isCutShort) return
    const { name, groups } = attributes.user
    const who = `user ${JSON.stringify(name)} (groups=[${groups.map((one) => JSON.stringify(one)).join(' ')}])`
    const lines = [...new Set(compact(missing).map(printRule))].sort()
    if (isCutShort) lines.push('and more')
    const resolution = errors.length > 0 ? `; resolution errors: [${errors.join(', ')}]` : ''
    throw refuse(attributes, `${who} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}${resolution}`)
  }
  return {
    name: 'RBACEscalation',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    async validate(attributes) {
      const { resource, subresource, user } = attributes
      if (resource.group !== group || subresource !== '' || user.groups.includes('system:masters')) return
      if (attributes.oldObject && changesOnlyOwners(attributes.object as KubeObject, attributes.oldObject)) return
      if (resource.resource === 'roles' || resource.resource === 'clusterroles') {
        const role = attributes.object as ClusterRole
        // As in the request: a new role's name is in its body.
        if (await may(attributes, { verb: 'escalate', name: attributes.operation === 'CREATE' ? '' : attributes.name })) return
        await mustHold(attributes, role.rules ?? [])
        // An aggregation rule can later give the role any permission, so the author needs them all.
        const aggregates = role.aggregationRule ?? (attributes.oldObject as Frozen<ClusterRole> | undefined)?.aggregationRule
        if (aggregates && !(await holds(attributes, everything))) throw refuse(attributes, 'must have cluster-admin privileges to use the aggregationRule')
      } else if (resource.resource === 'rolebindings' || resource.resource === 'clusterrolebindings') {
        const binding = attributes.object as RoleBinding
        const { kind, name } = binding.roleRef
        if (await may(attributes, { verb: 'bind', resource: kind === 'Role' ? 'roles' : 'clusterroles', name })) return
        const rules = rbac.rulesOf(binding.roleRef, attributes.namespace)
        if (!rules) throw notFound({ group, resource: kind === 'Role' ? 'roles' : 'clusterroles' }, name)
        await mustHold(attributes, rules)
      }
    },
  }
}

/** @throws Status Forbidden when the comparison exceeds its bound */
async function comparable(attributes: AdmissionAttributes, compared: Promise<Coverage>): Promise<Coverage> {
  try {
    return await compared
  } catch (error) {
    if (error instanceof RulesTooComplex) throw refuse(attributes, `${error.message}: split them up, or get the verb escalate or bind`)
    throw error
  }
}

const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** The garbage collector may remove owners and finalizers of roles that it could not grant. Upstream: IsOnlyMutatingGCFields. */
function changesOnlyOwners(object: KubeObject, old: Frozen<KubeObject>): boolean {
  const comparable = ({ metadata, ...rest }: Frozen<KubeObject>) => {
    const { ownerReferences: _owners, finalizers: _finalizers, managedFields: _managed, resourceVersion: _version, ...identity } = metadata
    return { identity, rest }
  }
  return deepEqual(comparable(object as Frozen<KubeObject>), comparable(old))
}

/** Merges single-verb rules of a resource into one rule, as upstream prints them; rules for paths are not merged. */
function compact(rules: readonly PolicyRule[]): PolicyRule[] {
  const byTarget = new Map<string, PolicyRule>()
  for (const rule of rules) {
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames, rule.nonResourceURLs, rule.nonResourceURLs && rule.verbs])
    const found = byTarget.get(key)
    if (found) append(found.verbs, rule.verbs)
    else byTarget.set(key, { ...rule, verbs: [...rule.verbs] })
  }
  return [...byTarget.values()]
}
