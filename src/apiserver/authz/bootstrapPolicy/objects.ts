/** The bootstrap policy as objects (L3, pure): roles, bindings, labels and annotations as upstream writes them. */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, Subject } from '#api/gen/types/rbac.v1'
import type { FeatureGateSettings } from '#base/featureGates'
import { aggregated, aggregationLabels, clusterRoleBindings, clusterRoles } from './clusterRoles.ts'
import { controllerRoles } from './controllerRoles.ts'
import { gatedPolicy } from './gatedRoles.ts'
import { namespaceBindings, namespaceRoles } from './namespaceRoles.ts'
import { expandRule, type ShortRule } from './shorthand.ts'

const group = 'rbac.authorization.k8s.io'
const apiVersion = `${group}/v1`
const aggregation = `${group}/`

export const autoUpdateAnnotation = 'rbac.authorization.kubernetes.io/autoupdate'

const metadata = (name: string, namespace?: string, label?: string) => ({
  name,
  ...(namespace ? { namespace } : {}),
  annotations: { [autoUpdateAnnotation]: 'true' },
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...(label ? { [aggregation + label]: 'true' } : {}) },
})

/** @param gates values of --feature-gates; absent gates have their default of v1.36 */
export function bootstrapClusterRoles(gates: FeatureGateSettings = {}): ClusterRole[] {
  const gated = gatedPolicy(gates)
  const rulesOf = (name: string, rules: readonly ShortRule[]) => (name === 'system:node' ? [...rules, ...gated.nodeRules] : rules)
  const plain = Object.entries({ ...clusterRoles, ...gated.clusterRoles }).map(([name, rules]) => clusterRole(name, rulesOf(name, rules)))
  const ofControllers = Object.entries({ ...controllerRoles, ...gated.controllerRoles })
  return [...plain, ...ofControllers.map(([name, rules]) => clusterRole(`system:controller:${name}`, rules))]
}

/** @param gates as for the roles */
export function bootstrapClusterRoleBindings(gates: FeatureGateSettings = {}): ClusterRoleBinding[] {
  const gated = gatedPolicy(gates)
  const controllers = Object.keys({ ...controllerRoles, ...gated.controllerRoles }).map(
    (name) => [`system:controller:${name}`, [`ServiceAccount:kube-system/${name}`]] as const,
  )
  return [...Object.entries({ ...clusterRoleBindings, ...gated.clusterRoleBindings }), ...controllers].map(([name, subjects]) => ({
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: metadata(name),
    roleRef: { apiGroup: group, kind: 'ClusterRole', name },
    ...(subjects.length > 0 ? { subjects: subjects.map(subject) } : {}),
  }))
}

export function bootstrapRoles(): Role[] {
  return namespaceRoles.map(({ namespace, name, rules }) => ({ apiVersion, kind: 'Role', metadata: metadata(name, namespace), rules: rules.map(expandRule) }))
}

export function bootstrapRoleBindings(): RoleBinding[] {
  return namespaceBindings.map(({ namespace, name, role, subjects }) => ({
    apiVersion,
    kind: 'RoleBinding',
    metadata: metadata(name, namespace),
    roleRef: { apiGroup: group, kind: 'Role', name: role },
    subjects: subjects.map(subject),
  }))
}

function clusterRole(name: string, rules: readonly ShortRule[]): ClusterRole {
  const gathers = aggregated[name]
  const base = { apiVersion, kind: 'ClusterRole', metadata: metadata(name, undefined, aggregationLabels[name]) }
  if (!gathers) return { ...base, rules: rules.map(expandRule) }
  // The aggregation controller fills in its rules.
  return { ...base, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregation + gathers]: 'true' } }] } }
}

/** 'User:x', 'Group:x' or 'ServiceAccount:namespace/x'. */
function subject(short: string): Subject {
  const colon = short.indexOf(':')
  const kind = short.slice(0, colon)
  const name = short.slice(colon + 1)
  if (kind !== 'ServiceAccount') return { kind, apiGroup: group, name }
  const slash = name.indexOf('/')
  return { kind, name: name.slice(slash + 1), namespace: name.slice(0, slash) }
}
