import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LruCache } from './lruCache.ts'

const filled = (capacity: number, ...keys: string[]) => {
  const cache = new LruCache<string, { key: string }>(capacity)
  for (const key of keys) cache.set(key, { key })
  return cache
}

test('what was used longest ago is dropped first', () => {
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

test('a deleted key is gone, and may come back', () => {
  const cache = filled(2, 'a')
  assert.equal(cache.delete('a'), true)
  assert.equal(cache.delete('a'), false)
  assert.equal(cache.get('a'), undefined)
  cache.set('a', { key: 'a' })
  assert.equal(cache.get('a')?.key, 'a')
})
