import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AccessObjects, type AccessQuestion, allows, subjectText, whoCan } from './whoCan.ts'

const question = (more: Partial<AccessQuestion> = {}): AccessQuestion => ({ verb: 'get', group: '', resource: 'pods', name: '', namespace: 'a', ...more })
const rule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }

for (const [name, given, asked, want] of [
  ['the resource itself', rule, {}, true],
  ['another verb', rule, { verb: 'list' }, false],
  ['another group', rule, { group: 'apps' }, false],
  ['a subresource of a resource', rule, { resource: 'pods/exec' }, false],
  ['a subresource of its own', { ...rule, resources: ['pods/exec'] }, { resource: 'pods/exec' }, true],
  ['a subresource of any resource', { ...rule, resources: ['*/exec'] }, { resource: 'pods/exec' }, true],
  ['everything', { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, { resource: 'pods/exec', verb: 'create' }, true],
  ['a name, asked for any', { ...rule, resourceNames: ['web'] }, {}, false],
  ['a name, asked for it', { ...rule, resourceNames: ['web'] }, { name: 'web' }, true],
  ['a path', { verbs: ['get'], nonResourceURLs: ['*'] }, {}, false],
] as const) {
  test(`ARC-16 a rule for ${name} ${want ? 'allows' : 'does not allow'} it`, () => assert.equal(allows(given, question(asked)), want))
}

test('ARC-16 the subjects who may do something are named with their binding and role, those of other namespaces left out', () => {
  const ann = { kind: 'User', name: 'ann' }
  const bot = { kind: 'ServiceAccount', name: 'bot', namespace: 'b' }
  const binding = (name: string, kind: string, role: string, subjects: readonly (typeof ann)[] | null, namespace?: string) => ({
    ...{ metadata: { name, ...(namespace ? { namespace } : {}) }, roleRef: { kind, name: role }, subjects },
  })
  const objects: AccessObjects = {
    roles: [
      { metadata: { namespace: 'a', name: 'reader' }, rules: [rule] },
      { metadata: { namespace: 'b', name: 'other' }, rules: [rule] },
    ],
    clusterRoles: [
      { metadata: { name: 'view' }, rules: [rule] },
      { metadata: { name: 'empty' }, rules: null },
    ],
    roleBindings: [
      binding('r', 'Role', 'reader', [ann], 'a'),
      binding('v', 'ClusterRole', 'view', [bot], 'a'),
      binding('elsewhere', 'Role', 'other', [ann], 'b'),
      binding('same-name', 'Role', 'other', [ann], 'a'),
      binding('nobody', 'Role', 'reader', null, 'a'),
    ],
    clusterRoleBindings: [binding('all', 'ClusterRole', 'view', [{ kind: 'Group', name: 'ops' }]), binding('none', 'ClusterRole', 'empty', [ann])],
  }
  assert.deepEqual(
    whoCan(objects, question()).map(({ subject, binding: by, role }) => [subjectText(subject), by, role]),
    [
      ['Group ops', 'ClusterRoleBinding all', 'ClusterRole view'],
      ['ServiceAccount b/bot', 'RoleBinding a/v', 'ClusterRole view'],
      ['User ann', 'RoleBinding a/r', 'Role reader'],
    ],
  )
  assert.deepEqual(
    whoCan(objects, question({ namespace: '' })).map(({ subject }) => subjectText(subject)),
    ['Group ops'],
  )
})
