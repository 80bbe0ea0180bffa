import assert from 'node:assert/strict'
import { test } from 'node:test'
import { semanticEqual } from './equality.ts'
import { FieldPath } from './fieldPath.ts'
import type { ObjectMeta } from './meta.ts'
import { nameIsDnsSubdomain } from './names.ts'
import { validateObjectMeta, validateObjectMetaUpdate } from './objectMeta.ts'

const path = FieldPath.of('metadata')
const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }

const creates: [string, Partial<ObjectMeta>, string[]][] = [
  ['good', { name: 'web', namespace: 'default', labels: { a: 'b' }, finalizers: ['example.com/x'], ownerReferences: [owner] }, []],
  ['no name', { namespace: 'default' }, ['metadata.name: Required value: name or generateName is required']],
  ['no namespace', { name: 'web' }, ['metadata.namespace: Required value']],
  [
    'large annotations',
    { name: 'a', namespace: 'b', annotations: { x: 'é'.repeat(131_072) } },
    ['metadata.annotations: Too long: may not be more than 262144 bytes'],
  ],
  [
    'two controllers',
    { name: 'a', namespace: 'b', ownerReferences: [owner, { ...owner, name: 'api' }] },
    [
      `metadata.ownerReferences: Invalid value: ${JSON.stringify([owner, { ...owner, name: 'api' }])}: Only one reference can have Controller set to true. Found "true" in references for ReplicaSet/web and ReplicaSet/api`,
    ],
  ],
  [
    'two policies',
    { name: 'a', namespace: 'b', finalizers: ['orphan', 'foregroundDeletion'] },
    ['metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set'],
  ],
  [
    'bad reference',
    { name: 'a', namespace: 'b', ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: '' }] },
    ['apiVersion', 'kind', 'name', 'uid'].map((field) => `metadata.ownerReferences[0].${field}: Required value: must not be empty`),
  ],
]
for (const [name, meta, want] of creates)
  test(`metadata on create: ${name}`, () =>
    assert.deepEqual(
      validateObjectMeta(meta as ObjectMeta, true, nameIsDnsSubdomain, path).map((e) => `${e.field}: ${e.body}`),
      want,
    ))

test('cluster-scoped objects have no namespace', () => {
  const errors = validateObjectMeta({ name: 'a', namespace: 'b' } as ObjectMeta, false, nameIsDnsSubdomain, path)
  assert.deepEqual(
    errors.map((e) => e.body),
    ['Forbidden: not allowed on this type'],
  )
})

const old = { name: 'a', namespace: 'b', uid: 'u', resourceVersion: '1', generation: 3, finalizers: ['x'] } as ObjectMeta
const updates: [string, Partial<ObjectMeta>, Partial<ObjectMeta>, string[]][] = [
  ['good', {}, {}, []],
  ['no version', { resourceVersion: '' }, {}, ['metadata.resourceVersion: Invalid value: "": must be specified for an update']],
  ['other uid', { uid: 'v' }, {}, ['metadata.uid: Invalid value: "v": field is immutable']],
  ['generation back', { generation: 2 }, {}, ['metadata.generation: Invalid value: 2: must not be decremented']],
  [
    'finalizer after deletion',
    { finalizers: ['x', 'y'] },
    { deletionTimestamp: '2026-01-01T00:00:00Z' },
    ['metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"y"}'],
  ],
]
for (const [name, change, oldChange, want] of updates)
  test(`metadata on update: ${name}`, () =>
    assert.deepEqual(
      validateObjectMetaUpdate({ ...old, ...oldChange, ...change }, { ...old, ...oldChange }, path).map((e) => `${e.field}: ${e.body}`),
      want,
    ))

test('equality ignores what Go cannot tell apart', () => {
  assert.ok(semanticEqual({ a: undefined, b: [], c: false, d: '' }, {}))
  assert.ok(!semanticEqual({ a: {} }, {}))
  assert.ok(!semanticEqual({ a: 0 }, {}))
  assert.ok(!semanticEqual([1, 2], [2, 1]))
})
