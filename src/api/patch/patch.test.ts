import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastJsonPatch from 'fast-json-patch'
import { isStatus } from '../machinery/status.ts'
import { schemaFor } from '../schema/builtIn.ts'
import type { Schema } from '../schema/schema.ts'
import { applyJsonPatch, type JsonPatchOperation, parseJsonPatch } from './jsonPatch.ts'
import { applyMergePatch } from './mergePatch.ts'
import { applyStrategicMergePatch } from './strategicMerge.ts'

const oracle: readonly { document: object; patch: JsonPatchOperation[] }[] = [
  { document: { a: 1 }, patch: [{ op: 'add', path: '/b', value: [1, { c: null }] }] },
  {
    document: { a: [1, 3] },
    patch: [
      { op: 'add', path: '/a/1', value: 2 },
      { op: 'add', path: '/a/-', value: 4 },
    ],
  },
  { document: { a: { b: 1 } }, patch: [{ op: 'remove', path: '/a/b' }] },
  {
    document: { a: [1, 2, 3] },
    patch: [
      { op: 'remove', path: '/a/1' },
      { op: 'replace', path: '/a/0', value: 9 },
    ],
  },
  {
    document: { 'a/b': 1, 'm~n': 2 },
    patch: [
      { op: 'test', path: '/a~1b', value: 1 },
      { op: 'replace', path: '/m~0n', value: 3 },
    ],
  },
  { document: { a: { b: [1] }, c: {} }, patch: [{ op: 'move', from: '/a/b', path: '/c/d' }] },
  {
    document: { a: { b: [1] } },
    patch: [
      { op: 'copy', from: '/a', path: '/c' },
      { op: 'add', path: '/c/b/-', value: 2 },
    ],
  },
  { document: { a: 1 }, patch: [{ op: 'replace', path: '', value: { whole: true } }] },
]
for (const { document, patch } of oracle) {
  test(`API-11 JSON patch agrees with fast-json-patch: ${JSON.stringify(patch)}`, () => {
    const frozen = JSON.stringify(document)
    const want: unknown = fastJsonPatch.applyPatch(structuredClone(document), structuredClone(patch) as fastJsonPatch.Operation[]).newDocument
    assert.deepEqual(applyJsonPatch(document, patch), want)
    assert.equal(JSON.stringify(document), frozen)
  })
}

const faults: readonly (readonly [JsonPatchOperation, string])[] = [
  [{ op: 'remove', path: '/x' }, 'Unable to remove nonexistent key: x: missing value'],
  [{ op: 'replace', path: '/x/y', value: 1 }, 'replace operation does not apply: doc is missing path: "/x/y": missing value'],
  [{ op: 'replace', path: '/list/9', value: 1 }, 'replace operation does not apply: doc is missing key: /list/9: missing value'],
  [{ op: 'add', path: '/x/y', value: 1 }, 'add operation does not apply: doc is missing path: "/x/y": missing value'],
  [{ op: 'add', path: '/list/5', value: 1 }, 'Unable to access invalid index: 5: invalid index referenced'],
  [{ op: 'test', path: '/a', value: 2 }, 'testing value /a failed: test failed'],
  [{ op: 'frob', path: '/a' }, 'Unexpected kind: frob'],
  [{ op: 'add', path: '/a' }, 'add operation does not apply: missing value'],
]
for (const [operation, want] of faults) {
  test(`a JSON patch that does not apply is 422: ${want}`, () => {
    assert.throws(
      () => applyJsonPatch({ a: 1, list: [1, 2] }, [operation]),
      (error) => isStatus(error, 'Invalid') && error.code === 422 && (error.cause as Error).message === want,
    )
  })
}

test('API-11 a JSON patch adds the member that it replaces, the object lacks it', () => {
  assert.deepEqual(applyJsonPatch({ metadata: { name: 'a' } }, [{ op: 'replace', path: '/metadata/annotations', value: { b: 'c' } }]), {
    metadata: { name: 'a', annotations: { b: 'c' } },
  })
})

test('negative indices count from the end, a test of an absent member against null holds', () => {
  const patch = [
    { op: 'replace', path: '/l/-1', value: 'last' },
    { op: 'test', path: '/nothing', value: null },
  ]
  assert.deepEqual(applyJsonPatch({ l: [1, 2] }, patch), { l: [1, 'last'] })
})

test('patches cannot reach the prototype', () => {
  const patched = applyJsonPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: 1 } }]) as { polluted?: number }
  assert.equal(patched.polluted, undefined)
  assert.equal(JSON.stringify(patched), '{"__proto__":{"polluted":1}}')
  assert.throws(() => applyJsonPatch({}, [{ op: 'add', path: '/__proto__/polluted', value: 1 }]))
  applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":1}}'))
  assert.equal(({} as { polluted?: number }).polluted, undefined)
})

test('a JSON patch is a list of at most 10,000 operations', () => {
  assert.throws(
    () => parseJsonPatch(Array.from({ length: 10_001 }, () => ({ op: 'test', path: '' }))),
    (error) => isStatus(error, 'RequestEntityTooLarge') && error.message === 'The allowed maximum operations in a JSON patch is 10000, got 10001',
  )
  assert.throws(() => parseJsonPatch({}), /json: cannot unmarshal object into Go value of type jsonpatch.Patch/)
})

const mergeCases: readonly (readonly [unknown, unknown, unknown])[] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
]
for (const [target, patch, want] of mergeCases) {
  test(`API-11 merge patch ${JSON.stringify(patch)} of RFC 7386`, () => assert.deepEqual(applyMergePatch(target, patch), want))
}

function schemaOf(group: string, kind: string): Schema {
  const schema = schemaFor(group, 'v1', kind)
  assert.ok(schema)
  return schema
}
const strategic: readonly { name: string; schema?: Schema; original: object; patch: object; want: object }[] = [
  {
    name: 'a list with a merge key merges by it, in the order of the patch',
    original: {
      spec: {
        containers: [
          { name: 'a', image: '1', args: ['x', 'y'] },
          { name: 'b', image: '1' },
        ],
      },
    },
    patch: {
      spec: {
        containers: [
          { name: 'b', image: '2' },
          { name: 'c', image: '3' },
          { name: 'a', args: ['z'] },
        ],
      },
    },
    want: {
      spec: {
        containers: [
          { name: 'b', image: '2' },
          { name: 'c', image: '3' },
          { name: 'a', image: '1', args: ['z'] },
        ],
      },
    },
  },
  {
    name: '$patch delete removes an item, null removes a field',
    original: { metadata: { labels: { a: '1', b: '2' } }, spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    patch: { metadata: { labels: { a: null } }, spec: { containers: [{ $patch: 'delete', name: 'a' }] } },
    want: { metadata: { labels: { b: '2' } }, spec: { containers: [{ name: 'b' }] } },
  },
  {
    name: '$patch replace replaces a list',
    original: { spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    patch: { spec: { containers: [{ $patch: 'replace' }, { name: 'c' }] } },
    want: { spec: { containers: [{ name: 'c' }] } },
  },
  {
    name: '$patch replace replaces an object',
    original: { metadata: { labels: { a: '1' } } },
    patch: { metadata: { labels: { $patch: 'replace', b: '2' } } },
    want: { metadata: { labels: { b: '2' } } },
  },
  {
    name: 'a primitive list merges without duplicates and $deleteFromPrimitiveList deletes',
    original: { metadata: { finalizers: ['a', 'b'] } },
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'], finalizers: ['b', 'c'] } },
    want: { metadata: { finalizers: ['b', 'c'] } },
  },
  {
    name: 'a plain list is replaced',
    original: { spec: { containers: [{ name: 'a', command: ['x', 'y'] }] } },
    patch: { spec: { containers: [{ name: 'a', command: ['z'] }] } },
    want: { spec: { containers: [{ name: 'a', command: ['z'] }] } },
  },
  {
    name: '$setElementOrder orders, and the server keeps its own items in place',
    original: { spec: { containers: [{ name: 'injected' }, { name: 'a' }, { name: 'b' }] } },
    patch: { spec: { '$setElementOrder/containers': [{ name: 'new' }, { name: 'b' }, { name: 'a' }], containers: [{ name: 'new', image: 'n' }] } },
    want: { spec: { containers: [{ name: 'new', image: 'n' }, { name: 'injected' }, { name: 'b' }, { name: 'a' }] } },
  },
  {
    name: '$setElementOrder alone',
    original: { metadata: { finalizers: ['a', 'b', 'c'] } },
    patch: { metadata: { '$setElementOrder/finalizers': ['c', 'a'] } },
    want: { metadata: { finalizers: ['b', 'c', 'a'] } },
  },
  {
    name: '$retainKeys drops what the union no longer is',
    schema: schemaOf('apps', 'Deployment'),
    original: { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } },
    patch: { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
    want: { spec: { strategy: { type: 'Recreate' } } },
  },
  {
    name: 'directives vanish where there is nothing to merge with',
    original: {},
    patch: { spec: { '$setElementOrder/containers': [{ name: 'a' }], containers: [{ name: 'a', image: null, env: [{ $patch: 'delete', name: 'x' }] }] } },
    want: { spec: { containers: [{ name: 'a', env: [] }] } },
  },
]
for (const c of strategic) {
  test(`API-11 strategic merge: ${c.name}`, () => {
    const before = JSON.stringify(c.original)
    assert.deepEqual(applyStrategicMergePatch(c.original, c.patch, c.schema ?? schemaOf('', 'Pod')), c.want)
    assert.equal(JSON.stringify(c.original), before)
  })
}

const orders: readonly { name: string; original: object; patch: object; want: object }[] = [
  {
    name: 'deleting an item and adding another keeps the server’s item in front of the new one',
    original: { metadata: { ownerReferences: [{ uid: '1' }, { uid: '2' }, { uid: '4' }] } },
    patch: {
      metadata: { '$setElementOrder/ownerReferences': [{ uid: '2' }, { uid: '3' }], ownerReferences: [{ uid: '3' }, { uid: '1', $patch: 'delete' }] },
    },
    want: { metadata: { ownerReferences: [{ uid: '2' }, { uid: '4' }, { uid: '3' }] } },
  },
  {
    name: 'a primitive list follows the patch',
    original: { metadata: { finalizers: ['a', 'b', 'c'] } },
    patch: { metadata: { finalizers: ['c', 'd', 'a'] } },
    want: { metadata: { finalizers: ['b', 'c', 'd', 'a'] } },
  },
]
for (const c of orders)
  test(`API-11 strategic merge order: ${c.name}`, () => assert.deepEqual(applyStrategicMergePatch(c.original, c.patch, schemaOf('', 'Pod')), c.want))

test('a patch list that contradicts its order is refused', () => {
  const patch = { metadata: { '$setElementOrder/finalizers': ['a', 'b'], finalizers: ['b', 'a'] } }
  assert.throws(() => applyStrategicMergePatch({ metadata: { finalizers: [] } }, patch, schemaOf('', 'Pod')), {
    message: "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
  })
})

test('a list item without its merge key and an unknown directive are refused', () => {
  const pod = schemaOf('', 'Pod')
  const original = { spec: { containers: [{ name: 'a' }] } }
  assert.throws(() => applyStrategicMergePatch(original, { spec: { containers: [{ image: 'x' }] } }, pod), {
    message: 'map: map[image:x] does not contain declared merge key: name',
  })
  assert.throws(() => applyStrategicMergePatch(original, { spec: { $patch: 'frob' } }, pod), { message: 'unknown patch type: frob in map: map[$patch:frob]' })
})
