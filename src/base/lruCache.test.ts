import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LruCache } from './lruCache.ts'

const filled = (capacity: number, ...keys: string[]) => {
  const cache = new LruCache<string, { key: string }>(capacity)
  for (const key of keys) cache.set(key, { key })
  return cache
}

test('the least recently used entry is dropped first', () => {
  const cache = filled(2, 'a', 'b')
  assert.deepEqual(cache.get('a'), { key: 'a' })
  cache.set('c', { key: 'c' })
  assert.equal(cache.get('b'), undefined)
  assert.deepEqual([cache.get('a')?.key, cache.get('c')?.key, cache.size], ['a', 'c', 2])
})

test('setting a key again replaces its value and makes it the newest', () => {
  const cache = filled(2, 'a', 'b')
  cache.set('a', { key: 'again' })
  cache.set('c', { key: 'c' })
  assert.deepEqual([cache.get('a')?.key, cache.get('b'), cache.size], ['again', undefined, 2])
})

test('a deleted key is absent and can be added again', () => {
  const cache = filled(2, 'a')
  assert.equal(cache.delete('a'), true)
  assert.equal(cache.delete('a'), false)
  assert.equal(cache.get('a'), undefined)
  cache.set('a', { key: 'a' })
  assert.equal(cache.get('a')?.key, 'a')
})

test('the order of use decides, however often keys were used and dropped before', () => {
  const cache = filled(3, 'a', 'b', 'c')
  const order = ['a', 'b', 'c']
  const use = (key: string) => {
    const at = order.indexOf(key)
    if (at >= 0) order.splice(at, 1)
    order.push(key)
    if (order.length > 3) order.shift()
  }
  for (let i = 0; i < 500; i++) {
    const key = order[(i * 7) % 3] as string
    if (i % 4 === 0) cache.set(`k${i}`, { key: `k${i}` })
    else if (i % 11 === 0) cache.delete(key)
    else cache.get(key)
    if (i % 4 === 0) use(`k${i}`)
    else if (i % 11 === 0) order.splice(order.indexOf(key), 1)
    else use(key)
    if (order.length < 3) {
      cache.set(`again${i}`, { key: `again${i}` })
      use(`again${i}`)
    }
    assert.deepEqual(
      [...cache.values()].map((value) => value.key),
      order,
    )
  }
})
