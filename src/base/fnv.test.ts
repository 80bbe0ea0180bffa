import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fnv32, fnv32a, fnv32aBytes } from './fnv.ts'

test('FNV of 32 bits is what Go computes', () => {
  assert.deepEqual([fnv32a(''), fnv32a('a'), fnv32a('foobar')], [0x811c9dc5, 0xe40c292c, 0xbf9cf968])
  assert.deepEqual([fnv32(''), fnv32('a'), fnv32('foobar')], [0x811c9dc5, 0x050c5d7e, 0x31f0b262])
})

test('pieces hash as the whole text does, and characters beyond ASCII count with all bytes of their UTF-8', () => {
  assert.equal(fnv32a('bar', fnv32a('foo')), fnv32a('foobar'))
  assert.equal(fnv32('bar', fnv32('foo')), fnv32('foobar'))
  assert.equal(fnv32a('aé€😀b'), fnv32aBytes(new TextEncoder().encode('aé€😀b')))
})
