import assert from 'node:assert/strict'
import { test } from 'node:test'
import { difference, differenceBelow, equals, type FieldSet, intersection, pathsOf, setOfFields, union, withNamedParents } from './fieldSet.ts'

const a: FieldSet = { 'f:x': {}, 'f:m': { '.': {}, 'f:a': {}, 'f:b': {} }, 'f:l': { 'k:{"name":"c"}': { '.': {}, 'f:name': {} } } }
const b: FieldSet = { 'f:x': {}, 'f:m': { 'f:b': {}, 'f:c': {} } }

const cases: readonly (readonly [string, FieldSet, FieldSet])[] = [
  ['union', union(a, b), { 'f:x': {}, 'f:m': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} }, 'f:l': { 'k:{"name":"c"}': { '.': {}, 'f:name': {} } } }],
  ['union of a leaf with its children', union({ 'f:m': {} }, { 'f:m': { 'f:a': {} } }), { 'f:m': { '.': {}, 'f:a': {} } }],
  ['difference', difference(a, b), { 'f:m': { '.': {}, 'f:a': {} }, 'f:l': { 'k:{"name":"c"}': { '.': {}, 'f:name': {} } } }],
  ['difference keeps a parent that stays a member', difference({ 'f:m': { '.': {}, 'f:a': {} } }, { 'f:m': { 'f:a': {} } }), { 'f:m': {} }],
  ['difference drops an emptied parent', difference({ 'f:m': { 'f:a': {} } }, { 'f:m': { 'f:a': {} } }), {}],
  ['difference removes a parent only as a member', difference({ 'f:m': { '.': {}, 'f:a': {} } }, { 'f:m': {} }), { 'f:m': { 'f:a': {} } }],
  ['intersection', intersection(a, b), { 'f:x': {}, 'f:m': { 'f:b': {} } }],
  ['differenceBelow', differenceBelow(a, setOfFields(['m.a', 'l'])), { 'f:x': {}, 'f:m': { '.': {}, 'f:b': {} } }],
  ['withNamedParents', withNamedParents(b), { 'f:x': {}, 'f:m': { '.': {}, 'f:b': {}, 'f:c': {} } }],
]
for (const [name, got, want] of cases) {
  test(name, () => {
    assert.deepEqual(got, want)
    assert.ok(equals(got, want))
  })
}

test('API-11 a difference without effect returns the same set', () => assert.equal(difference(a, { 'f:other': {} }), a))

test('API-11 paths are printed in upstream’s form', () => {
  const set: FieldSet = {
    'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:name': {} } }, 'f:finalizers': { 'v:"x"': {} } },
  }
  assert.deepEqual(pathsOf(set), ['.spec.finalizers[="x"]', '.spec.ports[port=80,protocol="TCP"]', '.spec.ports[port=80,protocol="TCP"].name'])
})
