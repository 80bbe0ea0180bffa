import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { VirtualClock } from '#base/virtualClock'
import { itemExponentialFailureRateLimiter, itemFastSlowRateLimiter, maxOfRateLimiter, withMaxWaitRateLimiter } from './rateLimiter.ts'
import { createWorkQueue } from './workQueue.ts'

test('CGO-05 a fast-slow limiter, the longest of several, and a cut-off wait', () => {
  const fastSlow = itemFastSlowRateLimiter<string>(5, 10_000, 2)
  assert.deepEqual([fastSlow.when('a'), fastSlow.when('a'), fastSlow.when('a'), fastSlow.when('b'), fastSlow.numRequeues('a')], [5, 5, 10_000, 5, 3])
  fastSlow.forget('a')
  assert.equal(fastSlow.when('a'), 5)
  const longest = maxOfRateLimiter(itemFastSlowRateLimiter<string>(5, 50, 1), itemExponentialFailureRateLimiter<string>(1, 1000))
  assert.deepEqual(
    Array.from({ length: 8 }, () => longest.when('a')),
    [5, 50, 50, 50, 50, 50, 64, 128],
  )
  assert.equal(withMaxWaitRateLimiter(longest, 100).when('a'), 100)
})

test('CGO-05 higher priorities are taken first; a waiting item moves up and never down', async () => {
  const clock = new VirtualClock()
  const queue = createWorkQueue<string>({ clock })
  queue.add('low', -100)
  queue.add('a')
  queue.add('b')
  queue.add('b', 5)
  queue.add('b', -5)
  queue.addAfter('late', 10, 100)
  await clock.advance(10)
  const taken = [await queue.get(), await queue.get(), await queue.get(), await queue.get()]
  assert.deepEqual(taken, ['late', 'b', 'a', 'low'])
  queue.add('low', 3)
  queue.add('c', 2)
  queue.done('low')
  assert.equal(await queue.get(), 'low', 'what was added during work keeps its priority')
})

test('CGO-05 items with random priorities are handed out once, in the order of a model', async () => {
  const adds = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.integer({ min: -2, max: 2 })), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(adds, async (added) => {
      const queue = createWorkQueue<string>({ clock: new VirtualClock() })
      /** In the order in which items reached their priority. */
      let model: { item: string; priority: number }[] = []
      for (const [item, priority] of added) {
        queue.add(item, priority)
        const there = model.find((entry) => entry.item === item)
        if (there && there.priority >= priority) continue
        model = [...model.filter((entry) => entry !== there), { item, priority }]
      }
      const wanted = model.sort((x, y) => y.priority - x.priority).map(({ item }) => item)
      assert.equal(queue.length, wanted.length)
      const taken: (string | undefined)[] = []
      while (queue.length > 0) taken.push(await queue.get())
      assert.deepEqual(taken, wanted)
    }),
  )
})
