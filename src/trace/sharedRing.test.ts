import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedRing } from './sharedRing.ts'

test('X7 a full ring drops the oldest entry of the owner who holds most, and keeps the only one of another', () => {
  const ring = new SharedRing<string>(4, 100)
  ring.push('bob', 'b1', 10)
  for (let at = 1; at <= 100; at++) ring.push('eve', `e${at}`, 10)
  assert.deepEqual([...ring.newest()], ['b1', 'e100', 'e99', 'e98'])
})

test('X7 a ring is bounded in bytes, and keeps no entry that is larger than all of it', () => {
  const ring = new SharedRing<string>(100, 100)
  ring.push('bob', 'b1', 60)
  ring.push('eve', 'e1', 50)
  assert.deepEqual([...ring.newest()], ['e1'])
  ring.push('eve', 'e2', 101)
  assert.deepEqual([...ring.newest()], ['e1'])
})
