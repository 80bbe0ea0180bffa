import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schema } from '../schema/schema.ts'
import type { FieldSet } from './fieldSet.ts'
import { mergeTyped, removeFields } from './merge.ts'

const set: Schema = { type: 'array', listType: 'set', element: { type: 'string' } }

/** Live, configuration, merged: one letter per item. */
const orders: readonly (readonly [string, string, string])[] = [
  ['abc', 'ab', 'abc'],
  ['ab', 'ba', 'ba'],
  ['abc', 'xyz', 'abcxyz'],
  ['abc', 'cxy', 'abcxy'],
  ['abcuv', 'cxv', 'abcuxv'],
  ['abcd', 'dxya', 'bcdxya'],
  ['bcde', 'ace', 'bacde'],
  ['abcdef', '1e2bx', 'acd1ef2bx'],
  ['', 'ab', 'ab'],
  ['ab', '', 'ab'],
]
for (const [live, config, want] of orders) {
  test(`API-11 applying ${config} to ${live} gives ${want}`, () => assert.equal((mergeTyped([...live], [...config], set) as string[]).join(''), want))
}

const schema: Schema = {
  type: 'object',
  fields: new Map<string, { name: string; required: boolean; schema: Schema }>([
    ['set', { name: 'set', required: false, schema: set }],
    ['map', { name: 'map', required: false, schema: { type: 'map', element: { type: 'string' } } }],
    ['atomic', { name: 'atomic', required: false, schema: { type: 'map', mapType: 'atomic', element: { type: 'string' } } }],
  ]),
}

test('API-11 maps merge by key, and atomic maps are replaced', () => {
  const live = { map: { a: '1', b: '1' }, atomic: { a: '1', b: '1' } }
  assert.deepEqual(mergeTyped(live, { map: { a: '2' }, atomic: { a: '2' } }, schema), { map: { a: '2', b: '1' }, atomic: { a: '2' } })
  assert.deepEqual(live.map, { a: '1', b: '1' })
})

test('API-11 an applied null replaces a value, but not one that is merged by its members', () => {
  const live = { map: { a: '1' }, atomic: { a: '1' }, set: ['x'] }
  assert.deepEqual(mergeTyped(live, { map: null, atomic: null, set: null }, schema), { map: { a: '1' }, atomic: null, set: ['x'] })
  assert.deepEqual(mergeTyped({ map: {}, set: [] }, { map: { a: null }, set: null }, schema), { map: { a: null }, set: null })
})

const removals: readonly { name: string; doomed: FieldSet; want: unknown }[] = [
  { name: 'an entry', doomed: { 'f:map': { 'f:a': {} } }, want: { set: ['x', 'y'], map: { b: '1' } } },
  { name: 'a set item', doomed: { 'f:set': { 'v:"x"': {} } }, want: { set: ['y'], map: { a: '1', b: '1' } } },
  { name: 'all items, and with them the list', doomed: { 'f:set': { 'v:"x"': {}, 'v:"y"': {} } }, want: { map: { a: '1', b: '1' } } },
  { name: 'a whole field', doomed: { 'f:map': { '.': {}, 'f:a': {} } }, want: { set: ['x', 'y'] } },
  { name: 'everything', doomed: { 'f:map': {}, 'f:set': {} }, want: undefined },
]
for (const { name, doomed, want } of removals) {
  test(`API-11 removes ${name}`, () => assert.deepEqual(removeFields({ set: ['x', 'y'], map: { a: '1', b: '1' } }, doomed, schema), want))
}
