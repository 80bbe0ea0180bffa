import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EditedLists, PiecewiseList } from './editedLists.ts'
import { applyJsonPatch, type JsonPatchOperation } from './jsonPatch.ts'

const numbers = (length: number) => Array.from({ length }, (_, index) => index)

/** A sequence without a pattern that repeats exactly. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state % below
  }
}

test('API-11 a list in pieces is the array that the same edits make', () => {
  const next = pseudoRandom(7)
  const plain: unknown[] = numbers(5_000)
  const pieces = new PiecewiseList(plain)
  for (let i = 0; i < 20_000; i++) {
    const index = next(plain.length + 1)
    const edit = next(3)
    if (edit === 0 && index < plain.length) {
      plain.splice(index, 1)
      pieces.remove(index)
    } else if (edit === 1 && index < plain.length) {
      plain[index] = `set${i}`
      pieces.set(index, `set${i}`)
    } else {
      plain.splice(index, 0, i)
      pieces.insert(index, i)
    }
    assert.equal(pieces.length, plain.length)
    const at = next(plain.length)
    assert.equal(pieces.at(at), plain[at])
  }
  assert.deepEqual(pieces.toArray(), plain)
  while (pieces.length > 0) pieces.remove(pieces.length - 1)
  pieces.insert(0, 'only')
  assert.deepEqual(pieces.toArray(), ['only'])
})

test('API-11 ten thousand edits of a long list move a small part of it each', () => {
  const list = new PiecewiseList(numbers(1_000_000))
  for (let i = 0; i < 10_000; i++) list.insert(0, i)
  for (let i = 0; i < 10_000; i++) list.remove(500_000)
  // An array would have moved fifteen thousand million items.
  assert.ok(list.steps < 60_000_000, `${list.steps} steps`)
})

test('API-11 JSON patches of long lists mean what they mean for short ones', () => {
  const operations: JsonPatchOperation[] = [
    { op: 'add', path: '/list/0', value: 'first' },
    { op: 'add', path: '/list/-', value: { inner: [1] } },
    { op: 'add', path: '/list/-1/inner/0', value: 0 },
    { op: 'remove', path: '/list/1' },
    { op: 'replace', path: '/list/1', value: 'second' },
    { op: 'test', path: '/list/1', value: 'second' },
    { op: 'move', from: '/list/2', path: '/moved' },
    { op: 'copy', from: '/list', path: '/copied' },
    { op: 'remove', path: '/list/-1' },
    { op: 'move', from: '/list', path: '/renamed' },
    { op: 'add', path: '/renamed/0', value: 'zeroth' },
  ]
  for (const length of [10, 10_000]) {
    const list = numbers(length)
    const rest = ['second', ...list.slice(3)]
    assert.deepEqual(applyJsonPatch({ list }, operations), {
      moved: 2,
      copied: ['first', ...rest, { inner: [0, 1] }],
      renamed: ['zeroth', 'first', ...rest],
    })
  }
})

test('API-11 a list that is read between its edits shows all of them', () => {
  const lists = new EditedLists()
  const list = numbers(5_000)
  const document = { deep: [{ list }] }
  lists.insert(list, 0, 'a')
  lists.settle(document)
  assert.equal(list[0], 'a')
  lists.remove(list, 0)
  lists.settle({ other: [] })
  assert.equal(lists.at(list, 0), 0)
  lists.settle(document)
  assert.deepEqual(list, numbers(5_000))
})
