/** Which watches count as requests, and when. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expired } from '#api/machinery/status'
import { type Labels, type Metrics, noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { meteredTransport } from './restMetrics.ts'
import type { Transport } from './transport.ts'

const request = { method: 'GET', path: '/api/v1/pods' } as const
const signal = new AbortController().signal

/** @returns the transport, and the codes that were counted */
function metered(watch: Transport['watch']) {
  const codes: (string | number | undefined)[] = []
  const metrics: Metrics = { ...noMetrics, counter: () => ({ inc: (labels?: Labels) => void codes.push(labels?.code) }) as never }
  const transport = { watch } as unknown as Transport
  return { transport: meteredTransport(transport, metrics, new VirtualClock(), 'h:1'), codes }
}

test('OBS-04 a watch counts once, with its first events, and an error that follows them does not', async () => {
  const { transport, codes } = metered(async function* () {
    yield []
    yield []
    throw expired('too old')
  })
  const watch = transport.watch(request, signal)[Symbol.asyncIterator]()
  await watch.next()
  assert.deepEqual(codes, ['200'])
  await watch.next()
  await assert.rejects(watch.next())
  assert.deepEqual(codes, ['200'])
})

test('OBS-04 a watch without events counts when it ends, and one that is refused with its code', async () => {
  const ended = metered(async function* () {})
  for await (const _ of ended.transport.watch(request, signal));
  assert.deepEqual(ended.codes, ['200'])
  const refused = metered(async function* () {
    yield* []
    throw expired('too old')
  })
  await assert.rejects(refused.transport.watch(request, signal)[Symbol.asyncIterator]().next())
  assert.deepEqual(refused.codes, ['410'])
})
