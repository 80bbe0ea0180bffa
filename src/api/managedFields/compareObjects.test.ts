import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schema } from '../schema/schema.ts'
import { compareObjects } from './compareObjects.ts'
import type { FieldSet } from './fieldSet.ts'
import { fieldSetOf } from './typed.ts'

/** The members of a set, one line each. */
function lines(set: FieldSet, before = ''): string[] {
  return Object.entries(set).flatMap(([element, below]) => {
    if (element === '.') return []
    const isMember = Object.keys(below).length === 0 || '.' in below
    return [...(isMember ? [`${before}${element}`] : []), ...lines(below, `${before}${element} `)]
  })
}

/** Values of a free-form field: [name, old, new, changed, removed]. */
const free: [name: string, old: unknown, updated: unknown, changed: string[], removed: string[]][] = [
  ['a null becomes a map: its content came', null, { b: {} }, ['f:a f:b'], []],
  ['a map becomes null: its content went', { b: {} }, null, [], ['f:a f:b']],
  ['a null becomes an empty map', null, {}, ['f:a'], []],
  ['a map becomes a text', { b: {} }, 'b', ['f:a'], ['f:a f:b']],
  ['a text becomes a map', 'b', { b: {} }, ['f:a', 'f:a f:b'], []],
  ['an empty map becomes a text', {}, 'b', ['f:a'], []],
  ['a list is one value', ['b'], ['c'], ['f:a'], []],
  ['a list becomes a map', ['b'], { b: 1 }, ['f:a', 'f:a f:b'], []],
  ['a null becomes a text', null, 'b', ['f:a'], []],
  ['nothing', { b: 1 }, { b: 1 }, [], []],
]
for (const [name, old, updated, changed, removed] of free) {
  test(`API-11 what changed of a free-form field: ${name}`, () => {
    const found = compareObjects({ a: old }, { a: updated }, undefined)
    assert.deepEqual([lines(found.changed), lines(found.removed)], [changed, removed])
  })
}

test('API-11 items that share a key are owned as one, without their content', () => {
  const text: Schema = { type: 'string' }
  const field = (name: string) => [name, { name, schema: text, required: false }] as const
  const item: Schema = { type: 'object', fields: new Map([field('name'), field('value')]) }
  const list: Schema = { type: 'array', listType: 'map', listMapKeys: ['name'], element: item }
  const schema: Schema = { type: 'object', fields: new Map([['list', { name: 'list', schema: list, required: false }]]) }
  const items = [{ name: 'a', value: '1' }, { name: 'b' }, { name: 'a', value: '2' }]
  assert.deepEqual(lines(fieldSetOf({ list: items }, schema)), ['f:list k:{"name":"a"}', 'f:list k:{"name":"b"}', 'f:list k:{"name":"b"} f:name'])
})
