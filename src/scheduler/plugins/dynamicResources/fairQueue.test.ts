import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairQueue } from './fairQueue.ts'

function drain(queue: FairQueue<string>): string[] {
  const values: string[] = []
  for (let next = queue.shift(); next; next = queue.shift()) values.push(next.value)
  return values
}

test('DRA-04 owners of searches take turns, however many searches one owner has', () => {
  const queue = new FairQueue<string>()
  for (const key of ['a1', 'a2', 'a3']) queue.set('a', key, key)
  queue.set('b', 'b1', 'b1')
  assert.deepEqual(drain(queue), ['a1', 'b1', 'a2', 'a3'])
  assert.equal(queue.get('a1'), undefined)
})

test('DRA-04 a search that is added again keeps its place', () => {
  const queue = new FairQueue<string>()
  for (const key of ['a1', 'a2']) queue.set('a', key, key)
  queue.set('a', 'a1', 'a1 again')
  assert.equal(queue.get('a1'), 'a1 again')
  assert.deepEqual(drain(queue), ['a1 again', 'a2'])
})
