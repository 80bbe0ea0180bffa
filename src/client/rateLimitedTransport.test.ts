import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { rateLimitedTransport } from './rateLimitedTransport.ts'
import type { Transport } from './transport.ts'

test('CGO-07 a burst passes, later calls pass at the rate, and a waiting call can be aborted', async () => {
  const clock = new VirtualClock()
  const at: number[] = []
  const inner: Transport = {
    request: async () => {
      at.push(clock.monotonicMs())
      return { status: 200, body: {}, warnings: [] }
    },
    async *watch() {},
  }
  const transport = rateLimitedTransport(inner, clock, { qps: 5, burst: 2 })
  const call = (signal?: AbortSignal) => transport.request({ method: 'GET', path: '/' }, signal)
  const calls = Promise.all([call(), call(), call(), call()])
  const impatient = new AbortController()
  const aborted = assert.rejects(call(impatient.signal), /enough/)
  impatient.abort(new Error('enough'))
  await clock.advance(1_000)
  await Promise.all([calls, aborted])
  assert.deepEqual(at, [0, 0, 200, 400])
})

test('CGO-07 a watch opens at once and takes no turn, the burst is used up', async () => {
  const clock = new VirtualClock()
  const opened: number[] = []
  const inner: Transport = {
    request: async () => ({ status: 200, body: {}, warnings: [] }),
    async *watch() {
      opened.push(clock.monotonicMs())
      yield []
    },
  }
  const transport = rateLimitedTransport(inner, clock, { qps: 1, burst: 1 })
  const { signal } = new AbortController()
  const get = () => transport.request({ method: 'GET', path: '/' }, signal)
  await get()
  const reading = transport.watch({ method: 'GET', path: '/' }, signal)[Symbol.asyncIterator]().next()
  await clock.advance(0)
  assert.deepEqual(opened, [0])
  await Promise.all([reading, get(), clock.advance(1_000)])
  assert.equal(clock.monotonicMs(), 1_000)
})
