import assert from 'node:assert/strict'
import test from 'node:test'
import { FloodBudget } from './floodBudget.ts'
import { ReceiveWindow } from './receiveWindow.ts'
import { RecentResets } from './recentResets.ts'

test('a window grows when half of it was taken, and not before', () => {
  const window = new ReceiveWindow(100)
  assert.deepEqual([window.take(60), window.give(49), window.give(1), window.give(49)], [true, 0, 50, 0])
  // 40 are left, and 50 were given.
  assert.deepEqual([window.take(90), window.take(1)], [true, false])
})

test('a flood is more than a thousand frames a second for long', () => {
  const budget = new FloodBudget(0)
  let now = 0
  const take = (count: number) => Array.from({ length: count }, () => budget.take(() => now)).filter((taken) => !taken).length
  assert.equal(take(10_000), 0)
  now = 2_000
  assert.equal(take(2_000), 0)
  assert.equal(take(1), 1)
  for (now = 2_100; now < 100_000; now += 100) assert.equal(take(90), 0)
})

test('recently reset streams are remembered, older ones are not', () => {
  const resets = new RecentResets()
  for (let stream = 1; stream <= 401; stream += 2) resets.add(stream)
  assert.deepEqual([resets.has(401), resets.has(151), resets.has(1)], [true, true, false])
})
