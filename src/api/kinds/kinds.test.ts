import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInResources } from '#api/discovery/resources'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { ClusterRoleBinding, PolicyRule, RoleBinding } from '#api/gen/types/rbac.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { seededRandom } from '#base/random'
import { endpointSlice } from './discovery/endpointSlice.ts'
import { strategies, strategyFor } from './index.ts'
import { clusterRole, role } from './rbac/role.ts'
import { clusterRoleBinding, roleBinding } from './rbac/roleBinding.ts'
import { priorityClass } from './scheduling/priorityClass.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)

test('every kind is listed once', () => {
  const ids = strategies.map((strategy) => `${strategy.group}/${strategy.kind}`)
  assert.equal(new Set(ids).size, ids.length)
  assert.equal(strategyFor('apps', 'Deployment')?.kind, 'Deployment')
  assert.equal(strategyFor('apps', 'Pod'), undefined)
})

test('every kind’s columns begin with a name or have one, and survive an empty object', () => {
  for (const strategy of strategies) {
    const empty = { apiVersion: '', kind: strategy.kind, metadata: { name: 'n' }, spec: {}, status: {}, roleRef: {} }
    for (const column of strategy.columns ?? []) {
      const cell = column.value(empty as never, 0)
      assert.notEqual(cell, undefined, `${strategy.kind} ${column.name}`)
    }
    assert.ok(!strategy.columns || strategy.columns.some((column) => column.name === 'Name'), strategy.kind)
  }
})

const rules: [string, PolicyRule, string[], string[]][] = [
  ['good', { verbs: ['get'], apiGroups: [''], resources: ['pods'] }, [], []],
  [
    'no verbs',
    { verbs: [], apiGroups: [''], resources: ['pods'] },
    ['rules[0].verbs: Required value: verbs must contain at least one value'],
    ['rules[0].verbs: Required value: verbs must contain at least one value'],
  ],
  [
    'urls',
    { verbs: ['get'], nonResourceURLs: ['/x'] },
    ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    [],
  ],
]
for (const [name, rule, inRole, inClusterRole] of rules)
  test(`rules: ${name}`, () => {
    const made = { apiVersion: '', kind: '', metadata: {}, rules: [rule] }
    assert.deepEqual(
      [texts(role.validate?.({ obj: made, path, context })), texts(clusterRole.validate?.({ obj: made, path, context }))],
      [inRole, inClusterRole],
    )
  })

test('bindings: defaults, subjects, and a role reference that stays', () => {
  const made: RoleBinding = {
    apiVersion: '',
    kind: '',
    metadata: {},
    roleRef: { kind: 'Role', name: 'r' },
    subjects: [
      { kind: 'User', name: 'u' },
      { kind: 'ServiceAccount', name: 's', namespace: 'n' },
    ],
  }
  roleBinding.defaults?.(made, 'v1')
  assert.deepEqual(texts(roleBinding.validate?.({ obj: made, path, context })), [])
  assert.deepEqual((roleBinding.columns ?? []).map((column) => column.value(made, 0)).slice(1), ['Role/r', '<unknown>', 'u', '', 'n/s'])
  const other = { ...made, roleRef: { ...made.roleRef, name: 'q' } }
  assert.deepEqual(texts(roleBinding.validateUpdate?.({ obj: other, old: made, path, context })), [
    'roleRef: Invalid value: {"kind":"Role","name":"q","apiGroup":"rbac.authorization.k8s.io"}: cannot change roleRef',
  ])
  const cluster: ClusterRoleBinding = {
    ...made,
    subjects: [
      { kind: 'Robot', name: 'x' },
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: '' },
    ],
  }
  assert.deepEqual(texts(clusterRoleBinding.validate?.({ obj: cluster, path, context })), [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    'subjects[1].name: Required value',
  ])
})

test('a slice’s addresses are of its type', () => {
  const made: EndpointSlice = {
    apiVersion: '',
    kind: '',
    metadata: {},
    addressType: 'IPv4',
    endpoints: [{ addresses: ['::1'] }, { addresses: [] }],
    ports: [{ port: 80, protocol: 'TCP', name: '' }],
  }
  assert.deepEqual(texts(endpointSlice.validate?.({ obj: made, path, context })), [
    'endpoints[0].addresses[0]: Invalid value: "::1": must be an IPv4 address',
    'endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
    'endpoints[1].addresses: Required value: must contain at least 1 address',
  ])
  assert.deepEqual((endpointSlice.columns ?? []).map((column) => column.value(made, 0)).slice(1, 4), ['IPv4', '80', '::1'])
})

test('priority classes: system names are reserved, values stay', () => {
  const made = (name: string, value: number) => ({ apiVersion: '', kind: '', metadata: { name }, value })
  const check = (name: string, value: number) => texts(priorityClass.validate?.({ obj: made(name, value), path, context }))
  assert.deepEqual(check('high', 1_000_000_000), [])
  assert.deepEqual(check('high', 1_000_000_001), ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000'])
  assert.deepEqual(check('system-node-critical', 2_000_001_000), [])
  assert.equal(check('system-mine', 1).length, 1)
  assert.deepEqual(texts(priorityClass.validateUpdate?.({ obj: made('a', 2), old: made('a', 1), path, context })), [
    'value: Forbidden: may not be changed in an update.',
  ])
})

test('API-17 every listable resource defines its columns', () => {
  const missing = builtInResources()
    .filter((resource) => resource.verbs.includes('list') && !strategyFor(resource.group, resource.kind)?.columns)
    .map((resource) => `${resource.group}/${resource.kind}`)
  assert.deepEqual(missing, [])
})

test('every strategy belongs to a resource of the API, and owns its status where that has one', () => {
  const offByDefault: string[] = []
  const known = new Map(builtInResources().map((resource) => [`${resource.group}/${resource.kind}`, resource]))
  for (const strategy of strategies) {
    const resource = known.get(`${strategy.group}/${strategy.kind}`)
    if (!resource) offByDefault.push(strategy.kind)
    for (const subresource of resource?.subresources ?? []) {
      if (subresource.name === 'status') assert.ok(strategy.status, `${strategy.kind} has no rules for its status`)
      if (subresource.name === 'scale') assert.ok(strategy.scale, `${strategy.kind} has no scale`)
    }
  }
  const betaAndAlpha = ['ClusterTrustBundle', 'PodCertificateRequest', 'LeaseCandidate', 'PodGroup', 'Workload', 'DeviceTaintRule', 'ResourcePoolStatusRequest']
  assert.deepEqual(offByDefault.sort(), [...betaAndAlpha, 'StorageVersion', 'StorageVersionMigration'].sort())
})

test('API-09 every trigger field of a kind is selectable', () => {
  const fields = strategies.flatMap(({ kind, triggerFields = [], selectableFields = {} }) =>
    triggerFields.map((field) => `${kind} ${field} ${Object.hasOwn(selectableFields, field)}`),
  )
  assert.deepEqual(fields, ['Pod spec.nodeName true'])
})
