import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RemovalQueue } from './removalQueue.ts'

/** Takes every volume that is due. */
function takeAll(queue: RemovalQueue, nowMs: number): string[] {
  const taken: string[] = []
  for (let name = queue.take(nowMs); name !== undefined; name = queue.take(nowMs)) taken.push(name)
  return taken
}

test('STO-05 the removal that had the least time gets the next slice, a new one the first', () => {
  const queue = new RemovalQueue()
  queue.want(new Set(['large', 'medium']))
  assert.deepEqual(takeAll(queue, 0), ['large', 'medium'])
  queue.put('large', 'unfinished', 2_000, 2_000)
  queue.put('medium', 'unfinished', 500, 2_000)
  queue.want(new Set(['large', 'medium', 'small']))
  assert.deepEqual(takeAll(queue, 2_000), ['small', 'medium', 'large'])
})

test('STO-05 removals of equal time take turns', () => {
  const queue = new RemovalQueue()
  queue.want(new Set(['a', 'b']))
  const order: string[] = []
  for (let slice = 0; slice < 6; slice++) {
    const name = queue.take(0) ?? 'none'
    order.push(name)
    queue.put(name, 'unfinished', 0, 0)
  }
  assert.deepEqual(order, ['a', 'b', 'a', 'b', 'a', 'b'])
})

test('STO-05 a removal that fails waits twice as long after each attempt, up to a minute', () => {
  const queue = new RemovalQueue()
  queue.want(new Set(['a']))
  const waits: number[] = []
  let nowMs = 0
  for (let attempt = 0; attempt < 8; attempt++) {
    assert.equal(queue.take(nowMs), 'a')
    queue.put('a', attempt % 2 === 0 ? 'failed' : 'inUse', 10, nowMs)
    const dueMs = queue.nextDueMs() ?? Number.NaN
    assert.equal(queue.take(dueMs - 1), undefined)
    waits.push(dueMs - nowMs)
    nowMs = dueMs
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})

test('STO-05 a removal that fails at the end of each pass tells the first failure alone, and one after a success again', () => {
  const queue = new RemovalQueue()
  queue.want(new Set(['a']))
  const outcomes = ['unfinished', 'failed', 'unfinished', 'failed', 'inUse', 'failed', 'removed'] as const
  let nowMs = 0
  const first = outcomes.map((outcome) => {
    assert.equal(queue.take(nowMs), 'a')
    const isFirst = queue.put('a', outcome, 10, nowMs)
    nowMs += 60_000
    return isFirst
  })
  assert.deepEqual(first, [false, true, false, false, false, true, false])
})

test('STO-05 a removed volume is reported once, and again when it is still wanted after ten seconds', () => {
  const queue = new RemovalQueue()
  queue.want(new Set(['a', 'b']))
  takeAll(queue, 0)
  queue.put('b', 'removed', 1, 5)
  assert.deepEqual(queue.unreported(), ['b'])
  queue.reported(['b'], 5)
  assert.deepEqual([queue.unreported(), takeAll(queue, 10_004)], [[], []])
  assert.deepEqual(takeAll(queue, 10_005), ['b'])
})

test('STO-05 a volume that is not wanted any more is forgotten, while a slice is under way at its end', () => {
  const queue = new RemovalQueue()
  queue.want(new Set(['a', 'b']))
  assert.equal(queue.take(0), 'a')
  queue.want(new Set())
  queue.put('a', 'unfinished', 1, 1)
  queue.want(new Set())
  assert.deepEqual([takeAll(queue, 1), queue.nextDueMs()], [[], undefined])
})
