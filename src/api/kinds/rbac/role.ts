/** Role and ClusterRole (L1). Upstream: pkg/registry/rbac, pkg/apis/rbac/validation (v1.36). */
import type { ClusterRole, PolicyRule, Role } from '#api/gen/types/rbac.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { nameIsPathSegment } from '#api/machinery/names'
import { nameColumn, text } from '../columns.ts'
import { type Column, defineKind } from '../defineKind.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

const createdAt: Column<Role | ClusterRole> = text('Created At', (obj) => obj.metadata.creationTimestamp ?? '')

export const role = defineKind<Role>({
  group: rbacGroup,
  kind: 'Role',
  generation: false,
  allowCreateOnUpdate: true,
  validateName: nameIsPathSegment,
  columns: [nameColumn, createdAt],
  validate: ({ obj, path }) => validatePolicyRules(obj.rules, true, path.child('rules')),
  validateUpdate: ({ obj, path }) => validatePolicyRules(obj.rules, true, path.child('rules')),
})

export const clusterRole = defineKind<ClusterRole>({
  group: rbacGroup,
  kind: 'ClusterRole',
  generation: false,
  allowCreateOnUpdate: true,
  validateName: nameIsPathSegment,
  columns: [nameColumn, createdAt],
  validate: ({ obj, path }) => clusterRoleFaults(obj, path),
  validateUpdate: ({ obj, path }) => clusterRoleFaults(obj, path),
})

/** The faults of policy rules, as roles hold them. */
function validatePolicyRules(rules: readonly PolicyRule[] | undefined, namespaced: boolean, path: FieldPath): FieldError[] {
  return (rules ?? []).flatMap((rule, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (!rule.verbs?.length) errors.push(fieldError.required(at.child('verbs'), 'verbs must contain at least one value'))
    if (rule.nonResourceURLs?.length) {
      const urls = at.child('nonResourceURLs')
      if (namespaced) errors.push(fieldError.invalid(urls, rule.nonResourceURLs, 'namespaced rules cannot apply to non-resource URLs'))
      if (rule.apiGroups?.length || rule.resources?.length || rule.resourceNames?.length)
        errors.push(fieldError.invalid(urls, rule.nonResourceURLs, 'rules cannot apply to both regular resources and non-resource URLs'))
      return errors
    }
    if (!rule.apiGroups?.length) errors.push(fieldError.required(at.child('apiGroups'), 'resource rules must supply at least one api group'))
    if (!rule.resources?.length) errors.push(fieldError.required(at.child('resources'), 'resource rules must supply at least one resource'))
    return errors
  })
}

function clusterRoleFaults(obj: ClusterRole, path: FieldPath): FieldError[] {
  const errors = validatePolicyRules(obj.rules, false, path.child('rules'))
  if (!obj.aggregationRule) return errors
  const at = path.child('aggregationRule', 'clusterRoleSelectors')
  const selectors = obj.aggregationRule.clusterRoleSelectors ?? []
  if (selectors.length === 0) errors.push(fieldError.required(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil'))
  for (const [i, selector] of selectors.entries()) errors.push(...validateLabelSelector(selector, at.index(i)))
  return errors
}
