import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TracedRequest } from '#api/debug/traces'
import { VirtualClock } from '#base/virtualClock'
import { TraceBook } from './traceBook.ts'

const get = { isAsked: false, verb: 'get', resource: 'pods', namespace: 'a', name: 'x' }
const record = (id: string): TracedRequest => ({ id, atMs: 0, user: 'u', groups: [], verb: 'get', uri: '/', code: 200, durationMs: 0, stages: [] })

async function ask(book: TraceBook, clock: VirtualClock, times: number, everyMs: number): Promise<void> {
  for (let at = 0; at < times; at++) {
    const tracer = book.begin(get)
    if (tracer) book.finish(tracer, record(String(at)))
    await clock.advance(everyMs)
  }
}

test('X9 a rule for a sample records at most so many requests a second, counts the others, and ends with its time', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  assert.equal(book.sampled, undefined)
  book.addRule({ perSecond: 10, seconds: 5 })
  await ask(book, clock, 4000, 1)
  const { seen, kept } = book.sampled ?? { seen: 0, kept: 0 }
  assert.equal(seen, 4000)
  assert.ok(kept >= 40 && kept <= 51, `${kept} are kept`)
  assert.equal(book.requests(() => true).length, kept)
  await clock.advance(1000)
  assert.deepEqual([book.begin(get), book.sampled], [undefined, undefined])
})

test('X9 requests that arrive together are recorded together, as far as a second allows', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  book.addRule({ perSecond: 10, seconds: 60 })
  await ask(book, clock, 8, 0)
  assert.deepEqual(book.sampled, { seen: 8, kept: 8 })
  await ask(book, clock, 8, 0)
  assert.deepEqual(book.sampled, { seen: 16, kept: 10 })
})

test('X9 readers share one sample, with the largest of their rates and the latest of their ends', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  book.addRule({ perSecond: 20, seconds: 1 })
  book.addRule({ perSecond: 10, seconds: 10 })
  await clock.advance(5000)
  await ask(book, clock, 30, 0)
  assert.deepEqual(book.sampled, { seen: 30, kept: 20 })
})

test('LRN-05 with a rule for a sample components note what they do about any object, as far as a second allows', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  book.addRule({ perSecond: 2, seconds: 60 })
  const event = (atMs: number) => ({ component: 'deployment', what: 'reconcile', object: 'deployments/a/web', atMs, durationMs: 1, result: 'done' })
  let noted = 0
  for (let at = 0; at < 5; at++) {
    if (!book.follows('deployments', 'a', 'web')) continue
    book.note(event(at))
    noted++
  }
  assert.equal(noted, 2)
  assert.deepEqual(
    book.eventsSince(1).map(({ atMs }) => atMs),
    [1],
  )
})
