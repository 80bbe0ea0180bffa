import assert from 'node:assert/strict'
import test from 'node:test'
import { deepEqual, mayBeEqual, mayBeSameContent, mayBeSameSpec, sameObject, sameSpec } from './sameObject.ts'

const equal: readonly [unknown, unknown, boolean][] = [
  [{ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 }, true],
  [{ a: undefined }, {}, true],
  [{ a: null }, {}, false],
  [[1, 2], [2, 1], false],
  [[], {}, false],
  ['1', 1, false],
  [{ a: {} }, { a: { b: 1 } }, false],
]
for (const [a, b, want] of equal) {
  test(`equality of ${JSON.stringify(a)} and ${JSON.stringify(b)}`, () => assert.deepEqual([deepEqual(a, b), deepEqual(b, a)], [want, want]))
}

test('objects are the same whatever their resourceVersion, specs whatever their metadata and status', () => {
  const a = { metadata: { name: 'x', resourceVersion: '1' }, spec: { r: 1 }, status: { r: 1 } }
  assert.equal(sameObject(a, { ...a, metadata: { name: 'x', resourceVersion: '2' } }), true)
  assert.equal(sameObject(a, { ...a, metadata: { name: 'y', resourceVersion: '1' } }), false)
  assert.equal(sameSpec(a, { ...a, metadata: { name: 'y' }, status: {} }), true)
  assert.equal(sameSpec(a, { ...a, spec: { r: 2 } }), false)
  assert.equal(sameSpec(a, { metadata: {}, spec: { r: 1 }, data: {} }), false)
})

const nearlyEqual: readonly [unknown, unknown, boolean][] = [
  [{ a: null }, {}, true],
  [{ a: [] }, { a: null }, true],
  [{ a: { b: [] } }, { a: {} }, true],
  [[{ a: [] }], [{}], true],
  [{ a: [] }, { a: {} }, false],
  [{ a: {} }, {}, false],
  [{ a: [1] }, {}, false],
  [{ a: 1 }, { a: '1' }, false],
  [[1], [1, 2], false],
  [{ a: 0 }, {}, false],
]
for (const [a, b, want] of nearlyEqual) {
  test(`${JSON.stringify(a)} and ${JSON.stringify(b)} ${want ? 'may be' : 'are not'} the same to Go`, () => {
    assert.deepEqual([mayBeEqual(a, b), mayBeEqual(b, a)], [want, want])
    assert.equal(mayBeSameContent({ metadata: { x: 1 }, spec: a }, { metadata: { x: 2 }, spec: b }), want)
    assert.equal(mayBeSameSpec({ status: { x: 1 }, spec: a }, { status: { x: 2 }, spec: b }), want)
    assert.equal(mayBeSameSpec({ status: { x: 1 }, spec: a }, { status: { x: 2 }, spec: b }, true), false)
  })
}
