/**
 * Nobody grants more than they hold (L3): creating or changing a role or a binding needs its permissions, or the verbs escalate and bind.
 * Upstream keeps this in the registry (pkg/registry/rbac/{clusterrole,role,…}/policybased); here it is the first validating plugin.
 */
import type { ClusterRole, PolicyRule, RoleBinding } from '#api/gen/types/rbac.v1'
import type { Frozen } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import type { RbacAuthorizer } from '../../authz/rbac.ts'
import { printRule, uncovered } from '../../authz/rules.ts'
import { authorize } from '../../authz/union.ts'
import { deepEqual } from '../../registry/sameObject.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { refuse } from '../attributes.ts'

const group = 'rbac.authorization.k8s.io'

export function escalation(rbac: RbacAuthorizer, authorizers: readonly Authorizer[]): AdmissionPlugin {
  const may = async (attributes: AdmissionAttributes, wanted: Partial<AuthorizationAttributes>) => {
    const { user, namespace, resource } = attributes
    const base = { user, namespace, apiGroup: group, apiVersion: resource.version, resource: resource.resource, subresource: '', path: '', name: '', verb: '' }
    return (await authorize(authorizers, { ...base, isResourceRequest: true, ...wanted })).decision === 'allow'
  }
  /** @throws Status Forbidden when the user does not hold all of `rules`. */
  const mustHold = (attributes: AdmissionAttributes, rules: readonly Frozen<PolicyRule>[]) => {
    const { rules: held, errors } = rbac.granted(attributes.user, attributes.namespace)
    const missing = uncovered(held, rules)
    if (missing.length === 0) return
    const { name, groups } = attributes.user
    const who = `user ${JSON.stringify(name)} (groups=[${groups.map((one) => JSON.stringify(one)).join(' ')}])`
    const resolution = errors.length > 0 ? `; resolution errors: [${errors.join(', ')}]` : ''
    throw refuse(attributes, `${who} is attempting to grant RBAC permissions not currently held:\n${compact(missing).map(printRule).join('\n')}${resolution}`)
  }
  return {
    name: 'RBACEscalation',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    async validate(attributes) {
      const { resource, subresource, user } = attributes
      if (resource.group !== group || subresource !== '' || user.groups.includes('system:masters')) return
      if (resource.resource === 'roles' || resource.resource === 'clusterroles') {
        const role = attributes.object as ClusterRole
        const old = attributes.oldObject as Frozen<ClusterRole> | undefined
        if (old && deepEqual(old.rules, role.rules) && deepEqual(old.aggregationRule, role.aggregationRule)) return
        if (await may(attributes, { verb: 'escalate', name: role.metadata.name ?? '' })) return
        // An aggregation rule may come to mean anything.
        if (role.aggregationRule && !deepEqual(old?.aggregationRule, role.aggregationRule)) mustHold(attributes, everything)
        mustHold(attributes, role.rules ?? [])
      } else if (resource.resource === 'rolebindings' || resource.resource === 'clusterrolebindings') {
        const binding = attributes.object as RoleBinding
        const old = attributes.oldObject as Frozen<RoleBinding> | undefined
        if (old && deepEqual(old.roleRef, binding.roleRef) && deepEqual(old.subjects, binding.subjects)) return
        const { kind, name } = binding.roleRef
        if (await may(attributes, { verb: 'bind', resource: kind === 'Role' ? 'roles' : 'clusterroles', name })) return
        const rules = rbac.rulesOf(binding.roleRef, attributes.namespace)
        if (!rules) throw notFound({ group, resource: kind === 'Role' ? 'roles' : 'clusterroles' }, name)
        mustHold(attributes, rules)
      }
    },
  }
}

const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** Single-verb rules of one resource back into one rule each, as upstream prints them. */
function compact(rules: readonly PolicyRule[]): PolicyRule[] {
  const byTarget = new Map<string, PolicyRule>()
  for (const rule of rules) {
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames, rule.nonResourceURLs])
    const found = byTarget.get(key)
    if (found) found.verbs.push(...rule.verbs)
    else byTarget.set(key, { ...rule, verbs: [...rule.verbs] })
  }
  return [...byTarget.values()]
}
