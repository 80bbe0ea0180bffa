import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { otlpRequest } from '#base/otlp'
import type { Span } from '#base/traceContext'
import { VirtualClock } from '#base/virtualClock'
import { createPrometheusMetrics } from '../prometheus.ts'
import { createOtlpExporter } from './otlpExporter.ts'

const span = (startMs = 0): Span => ({
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  sampled: true,
  name: 'work',
  kind: 'internal',
  service: 's',
  startMs,
  endMs: startMs,
  attributes: {},
})

test('OBS-14 close of an exporter ends after 3 seconds and counts all spans as dropped, while a batch hangs', { timeout: 20_000 }, async (t) => {
  const collector = createServer(() => {}).listen(0, '127.0.0.1')
  t.after(() => {
    collector.closeAllConnections()
    collector.close()
  })
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  const metrics = createPrometheusMetrics()
  const clock = new VirtualClock()
  const exporter = createOtlpExporter(`http://127.0.0.1:${port}`, { clock, log: noLog, metrics })
  const asked = once(collector, 'request')
  for (let at = 0; at < 1100; at++) exporter.end(span())
  await asked
  const closed = exporter.close()
  await clock.advance(3000)
  await closed
  exporter.end(span())
  assert.match(metrics.render(), /^skiff_trace_spans_dropped_total 1101$/m)
})

test('OBS-14 a time a hair before a millisecond carries into its last digit', () => {
  const text = JSON.stringify(otlpRequest([span(1.9999996)], { scope: { name: 's' }, id: (hex) => hex }))
  assert.match(text, /"startTimeUnixNano":"2000000"/)
})
