/** RoleBinding and ClusterRoleBinding (L1). Upstream: pkg/registry/rbac, pkg/apis/rbac/{v1/defaults,validation} (v1.36). */
import type { ClusterRoleBinding, RoleBinding, Subject } from '#api/gen/types/rbac.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isPathSegmentName, nameIsDnsSubdomain, nameIsPathSegment } from '#api/machinery/names'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { type Column, defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { rbacGroup } from './role.ts'

type Binding = RoleBinding | ClusterRoleBinding

const columns: readonly Column<Binding>[] = [
  nameColumn,
  text('Role', (obj) => `${obj.roleRef.kind}/${obj.roleRef.name}`),
  ageColumn,
  text('Users', (obj) => subjectNames(obj, 'User').join(', '), 1),
  text('Groups', (obj) => subjectNames(obj, 'Group').join(', '), 1),
  text('ServiceAccounts', (obj) => subjectNames(obj, 'ServiceAccount').join(', '), 1),
]

export const roleBinding = defineKind<RoleBinding>({
  group: rbacGroup,
  kind: 'RoleBinding',
  generation: false,
  allowCreateOnUpdate: true,
  validateName: nameIsPathSegment,
  columns,
  defaults: setDefaults,
  validate: ({ obj, path }) => bindingFaults(obj, true, path),
  validateUpdate: ({ obj, old, path }) => [...bindingFaults(obj, true, path), ...roleRefChange(obj, old, path)],
})

export const clusterRoleBinding = defineKind<ClusterRoleBinding>({
  group: rbacGroup,
  kind: 'ClusterRoleBinding',
  generation: false,
  allowCreateOnUpdate: true,
  validateName: nameIsPathSegment,
  columns,
  defaults: setDefaults,
  validate: ({ obj, path }) => bindingFaults(obj, false, path),
  validateUpdate: ({ obj, old, path }) => [...bindingFaults(obj, false, path), ...roleRefChange(obj, old, path)],
})

function setDefaults(obj: Binding): void {
  obj.roleRef.apiGroup ||= rbacGroup
  for (const subject of obj.subjects ?? []) if (subject.kind === 'User' || subject.kind === 'Group') subject.apiGroup ||= rbacGroup
}

function subjectNames(obj: Frozen<Binding>, kind: string): string[] {
  return (obj.subjects ?? [])
    .filter((subject) => subject.kind === kind)
    .map(({ name, namespace }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${name}` : name))
}

/** The role of a binding is fixed, so that `update` cannot escalate; another role needs a new binding. */
function roleRefChange(obj: Binding, old: Frozen<Binding>, path: FieldPath): FieldError[] {
  return semanticEqual(obj.roleRef, old.roleRef) ? [] : [fieldError.invalid(path.child('roleRef'), obj.roleRef, 'cannot change roleRef')]
}

function bindingFaults(obj: Binding, namespaced: boolean, path: FieldPath): FieldError[] {
  const at = path.child('roleRef')
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']
  const errors: FieldError[] = []
  if (obj.roleRef.apiGroup !== rbacGroup) errors.push(fieldError.notSupported(at.child('apiGroup'), obj.roleRef.apiGroup, [rbacGroup]))
  if (!kinds.includes(obj.roleRef.kind)) errors.push(fieldError.notSupported(at.child('kind'), obj.roleRef.kind, kinds))
  if (!obj.roleRef.name) errors.push(fieldError.required(at.child('name')))
  else errors.push(...faults(at.child('name'), obj.roleRef.name, isPathSegmentName(obj.roleRef.name)))
  for (const [i, subject] of (obj.subjects ?? []).entries()) errors.push(...subjectFaults(subject, namespaced, path.child('subjects').index(i)))
  return errors
}

function subjectFaults(subject: Subject, namespaced: boolean, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!subject.name) errors.push(fieldError.required(path.child('name')))
  if (subject.kind === 'ServiceAccount') {
    if (subject.name) errors.push(...faults(path.child('name'), subject.name, nameIsDnsSubdomain(subject.name, false)))
    if (subject.apiGroup) errors.push(fieldError.notSupported(path.child('apiGroup'), subject.apiGroup, ['']))
    if (!subject.namespace && !namespaced) errors.push(fieldError.required(path.child('namespace')))
  } else if (subject.kind === 'User' || subject.kind === 'Group') {
    if (subject.apiGroup !== rbacGroup) errors.push(fieldError.notSupported(path.child('apiGroup'), subject.apiGroup, [rbacGroup]))
  } else errors.push(fieldError.notSupported(path.child('kind'), subject.kind, ['ServiceAccount', 'User', 'Group']))
  return errors
}
