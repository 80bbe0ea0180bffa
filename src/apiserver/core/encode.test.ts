import assert from 'node:assert/strict'
import test from 'node:test'
import type { ListAnswer } from './answer.ts'
import { encodeList } from './encode.ts'
import { CacheEntry } from './watch/cacheEntry.ts'

const textOf = async (answer: ListAnswer) => Buffer.concat((await encodeList(answer)).pieces).toString()

const values = [
  '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"canonical"},"data":{"kind":"x"}}',
  '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"another order"}}',
  '{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}',
]
const items = values.map((value, at) => CacheEntry.stored(String(at), Buffer.from(value), 7, 3))
const list: ListAnswer = { type: 'list', apiVersion: 'v1', kind: 'ConfigMapList', metadata: { resourceVersion: '9' }, items }
const want = {
  kind: 'ConfigMapList',
  apiVersion: 'v1',
  metadata: { resourceVersion: '9' },
  items: [
    { metadata: { resourceVersion: '7', name: 'canonical' }, data: { kind: 'x' } },
    { metadata: { resourceVersion: '7', name: 'another order' } },
    { metadata: { resourceVersion: '7' } },
  ],
}

for (const encoding of [undefined, 'pretty'] as const) {
  test(`API-16 items of a list do not repeat their type (${encoding ?? 'compact'})`, async () => {
    assert.deepEqual(JSON.parse(await textOf({ ...list, encoding })), want)
  })
}

test('an empty list is one', async () => {
  assert.equal(await textOf({ ...list, items: [] }), '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}\n')
})

for (const typedItems of [false, true]) {
  test(`API-05 a long list is made over several turns of the event loop (${typedItems ? 'custom' : 'built-in'} resources)`, async () => {
    const perTurn = new Map<number, number>()
    let turn = 0
    let isOver = false
    const count = () => {
      turn++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const bytes = Buffer.from(values[0] ?? '')
    const object = JSON.parse(values[0] ?? '') as CacheEntry['object']
    const many = Array.from({ length: 2_000 }, () => {
      let isMade = false
      return {
        object,
        resourceVersion: 7,
        get bytes() {
          if (!isMade) perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1)
          isMade = true
          return bytes
        },
      }
    })
    const text = await textOf({ ...list, typedItems, items: many })
    isOver = true
    assert.equal((JSON.parse(text) as { items: unknown[] }).items.length, many.length)
    assert.deepEqual([...perTurn.values()], [500, 500, 500, 500])
  })
}
