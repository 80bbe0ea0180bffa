import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Labels, Metrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { bucketRateLimiter, createTokenBucket, defaultControllerRateLimiter, itemExponentialFailureRateLimiter } from './rateLimiter.ts'
import { createWorkQueue } from './workQueue.ts'

test('CGO-05 an item is never worked on twice at once, and an add during work brings it back', async () => {
  const queue = createWorkQueue<string>({ clock: new VirtualClock() })
  queue.add('a')
  queue.add('a')
  assert.equal(queue.length, 1)
  assert.equal(await queue.get(), 'a')
  queue.add('a')
  assert.equal(queue.length, 0, 'still under work')
  queue.done('a')
  assert.equal(queue.length, 1)
})

test('CGO-05 takers wait for items, and leave at shutdown', async () => {
  const queue = createWorkQueue<string>({ clock: new VirtualClock() })
  const first = queue.get()
  const second = queue.get()
  queue.add('a')
  assert.equal(await first, 'a')
  queue.shutDown()
  assert.equal(await second, undefined)
  queue.add('b')
  assert.equal(await queue.get(), undefined)
})

test('CGO-05 shutting down with drain waits for work, also for work that came back', async () => {
  const queue = createWorkQueue<string>({ clock: new VirtualClock() })
  queue.add('a')
  assert.equal(await queue.get(), 'a')
  queue.add('a')
  let drained = false
  const drain = queue.shutDownWithDrain().then(() => {
    drained = true
  })
  queue.done('a')
  assert.equal(await queue.get(), 'a')
  await Promise.resolve()
  assert.equal(drained, false)
  queue.done('a')
  await drain
})

test('CGO-05 delayed items are handed out in time order; the earliest delay of one item counts', async () => {
  const clock = new VirtualClock()
  const queue = createWorkQueue<string>({ clock })
  queue.addAfter('late', 5_000)
  queue.addAfter('early', 1_000)
  queue.addAfter('late', 3_000)
  queue.addAfter('early', 9_000)
  await clock.advance(2_999)
  assert.equal(queue.length, 1)
  await clock.advance(1)
  assert.equal(queue.length, 2)
  assert.equal(await queue.get(), 'early')
  assert.equal(await queue.get(), 'late')
  queue.done('early')
  queue.done('late')
  await clock.advance(60_000)
  assert.equal(queue.length, 0)
})

test('CGO-05 back-off grows from 5 ms to 1000 s per item and starts over when forgotten', () => {
  const limiter = itemExponentialFailureRateLimiter<string>(5, 1_000_000)
  const waits = Array.from({ length: 20 }, () => limiter.when('a'))
  assert.deepEqual(waits.slice(0, 5), [5, 10, 20, 40, 80])
  assert.equal(waits[19], 1_000_000)
  assert.equal(limiter.when('b'), 5)
  limiter.forget('a')
  assert.equal(limiter.when('a'), 5)
  assert.equal(limiter.numRequeues('a'), 1)
})

test('CGO-05 the bucket lets a burst pass, then 10 a second', async () => {
  const clock = new VirtualClock()
  const limiter = bucketRateLimiter<number>(clock, 10, 100)
  const waits = Array.from({ length: 102 }, (_, i) => limiter.when(i))
  assert.deepEqual(waits.slice(98), [0, 0, 100, 200])
  await clock.advance(1_000)
  const bucket = createTokenBucket(clock, 5, 2)
  assert.deepEqual([bucket.takeMs(), bucket.takeMs(), bucket.takeMs()], [0, 0, 200])
  assert.equal(defaultControllerRateLimiter<string>(clock).when('a'), 5)
})

test('CGO-05 any history agrees with a model of dirty and processing sets', async () => {
  const item = fc.constantFrom('a', 'b', 'c', 'd')
  const step = fc.tuple(fc.constantFrom('add', 'get', 'done'), item)
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const queue = createWorkQueue<string>({ clock: new VirtualClock() })
      let waiting: string[] = []
      const dirty = new Set<string>()
      const processing = new Set<string>()
      for (const [what, name] of steps) {
        if (what === 'add') {
          queue.add(name)
          if (!dirty.has(name) && !processing.has(name)) waiting.push(name)
          dirty.add(name)
        } else if (what === 'get' && waiting.length > 0) {
          const [first = '', ...rest] = waiting
          assert.equal(await queue.get(), first)
          waiting = rest
          dirty.delete(first)
          processing.add(first)
        } else if (what === 'done') {
          queue.done(name)
          if (processing.delete(name) && dirty.has(name)) waiting.push(name)
        }
        assert.equal(queue.length, waiting.length)
      }
    }),
    { numRuns: 100 },
  )
})

test('CGO-05 the queue counts adds, depth, waits, work and retries', async () => {
  const seen = new Map<string, number>()
  const change = (name: string) => (by: number) => seen.set(name, (seen.get(name) ?? 0) + by)
  const metrics: Metrics = {
    counter: ({ name }) => ({ inc: (_?: Labels, by = 1) => void change(name)(by), series: () => ({ inc: (by = 1) => void change(name)(by) }) }),
    gauge: ({ name }) => ({
      set: (value) => void seen.set(name, value),
      inc: (_, by = 1) => void change(name)(by),
      dec: (_, by = 1) => void change(name)(-by),
      remove: () => {},
      series: () => ({ set: (value) => void seen.set(name, value), add: (by) => void change(name)(by) }),
    }),
    histogram: ({ name }) => ({ observe: (value) => void change(name)(value), series: () => ({ observe: (value) => void change(name)(value) }) }),
    summary: () => assert.fail(),
  }
  const clock = new VirtualClock()
  const queue = createWorkQueue<string>({ clock, metrics, name: 'test' })
  queue.add('a')
  queue.add('b')
  await clock.advance(2_000)
  await queue.get()
  queue.addRateLimited('a')
  await clock.advance(1_000)
  assert.deepEqual(Object.fromEntries(seen), {
    workqueue_depth: 2,
    workqueue_adds_total: 3,
    workqueue_queue_duration_seconds: 2,
    workqueue_retries_total: 1,
    workqueue_unfinished_work_seconds: 1,
    workqueue_longest_running_processor_seconds: 1,
  })
  queue.done('a')
  assert.equal(seen.get('workqueue_work_duration_seconds'), 1)
  queue.shutDown()
})
