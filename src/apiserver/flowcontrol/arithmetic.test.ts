/** The pure parts: dividing seats, dealing hands, integrating demand, computing Retry-After. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { allocateConcurrency } from './concurrencyAllocation.ts'
import { DroppedRequests } from './droppedRequests.ts'
import { Integrator } from './integrator.ts'
import { dealHand, hashFlow } from './shuffleSharding.ts'

const one = (lowerBound: number, target: number, upperBound: number) => ({ lowerBound, target, upperBound })
const divisions = [
  { name: 'no bound matters', sum: 12, classes: [one(0, 1, 99), one(0, 2, 99)], want: [4, 8] },
  { name: 'a lower bound matters', sum: 10, classes: [one(6, 6, 99), one(0, 6, 99)], want: [6, 4] },
  { name: 'an upper bound matters', sum: 10, classes: [one(0, 5, 2), one(0, 5, 99)], want: [2, 8] },
  { name: 'both matter', sum: 20, classes: [one(8, 8, 99), one(0, 4, 3), one(0, 12, 99)], want: [8, 3, 9] },
  { name: 'exactly the lower bounds', sum: 5, classes: [one(2, 7, 9), one(3, 3, 9)], want: [2, 3] },
  { name: 'exactly the upper bounds', sum: 11, classes: [one(2, 7, 8), one(3, 3, 3)], want: [8, 3] },
  { name: 'no class has a target', sum: 9, classes: [one(0, 0, 99), one(0, 0, 99), one(0, 0, 99)], want: [3, 3, 3] },
  { name: 'nothing to divide', sum: 0, classes: [one(0, 1, 2)], want: [0] },
  { name: 'less than the lower bounds', sum: 4, classes: [one(2, 2, 9), one(3, 3, 9)], want: undefined },
  { name: 'more than the upper bounds', sum: 19, classes: [one(2, 2, 9), one(3, 3, 9)], want: undefined },
  { name: 'a target below its lower bound', sum: 9, classes: [one(2, 1, 9)], want: undefined },
]
for (const { name, sum, classes, want } of divisions) {
  test(`API-18 divides seats: ${name}`, () => {
    const got = allocateConcurrency(sum, classes)?.allocations
    assert.deepEqual(
      got?.map((seats) => Math.round(seats * 1e6) / 1e6),
      want,
    )
  })
}

test("API-18 a hand has different queues, spread evenly, and equals upstream's", () => {
  // sha256("global-default\0alice") begins with these eight bytes, least significant first.
  assert.equal(hashFlow('a', 'b'), hashFlow('a', 'b'))
  assert.notEqual(hashFlow('a', 'b'), hashFlow('ab', ''))
  assert.deepEqual(dealHand(0n, 8, 3), [0, 1, 2])
  assert.deepEqual(dealHand(7n + 8n * 6n + 56n * 5n, 8, 3), [7, 6, 5])
  assert.deepEqual(dealHand(3n + 8n * 3n + 56n * 3n, 8, 3), [3, 4, 5])
  const used = new Array<number>(16).fill(0)
  for (let user = 0; user < 4000; user++) {
    const hand = dealHand(hashFlow('schema', `user${user}`), 16, 4)
    assert.equal(new Set(hand).size, 4)
    for (const queue of hand) used[queue] = (used[queue] as number) + 1
  }
  assert.ok(
    used.every((count) => count > 850 && count < 1150),
    `${used}`,
  )
})

test('API-18 the integrator averages demand over time, and a read starts a new period', () => {
  const demand = new Integrator(0)
  demand.set(4, 1000)
  demand.set(0, 3000)
  assert.deepEqual(demand.reset(4000), { seconds: 4, average: 2, deviation: 2, max: 4 })
  demand.set(1, 5000)
  assert.deepEqual(demand.reset(5000), { seconds: 1, average: 0, deviation: 0, max: 1 })
  assert.equal(demand.reset(5000).seconds, 0)
})

test('API-18 Retry-After doubles while many requests are refused, and shrinks by a second at a time', () => {
  const dropped = new DroppedRequests()
  const told: number[] = []
  const second = (at: number, requests: number) => {
    for (let i = 0; i < requests; i++) dropped.record(at)
    told.push(dropped.retryAfter)
  }
  for (let at = 1000; at < 1010; at++) second(at, 20)
  second(1020, 1)
  second(1021, 1)
  assert.deepEqual(told, [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 7, 6])
  for (let at = 2000; at < 2200; at++) second(at, 1000)
  assert.equal(dropped.retryAfter, 32)
})
