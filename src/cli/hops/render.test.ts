import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HopParts, hopsOf } from '#trace/hops'
import { toHtml, toOtlp, waterfall } from './render.ts'

const stage = (stage: string, atMs: number, durationMs: number, rule?: string) => ({
  stage,
  decision: 'ok',
  atMs,
  durationMs,
  ...(rule === undefined ? {} : { rule }),
})
const parts: HopParts = {
  pod: { metadata: { namespace: 'a', name: '<b>&' }, spec: { nodeName: 'n1', containers: [] } } as never,
  client: { validation: { atMs: 1000, durationMs: 1, decision: 'valid' }, tls: { atMs: 1001, durationMs: 4, decision: 'TLSv1.3' } },
  request: {
    id: '0123456789abcdef0123456789abcdef',
    atMs: 1006,
    user: 'u',
    groups: [],
    verb: 'create',
    uri: '/',
    code: 201,
    durationMs: 9,
    stages: [
      stage('authentication', 1007, 1),
      stage('authorization', 1008, 0.5, 'RBAC: allowed'),
      stage('validation', 1010, 1),
      stage('storage', 1014, 3),
      stage('watchFanOut', 1016, 2),
    ],
  },
  events: [
    // It began before the fan-out was noted as finished.
    { component: 'kube-scheduler', what: 'attempt', object: 'pods/a/b', atMs: 1015, durationMs: 1, result: 'chose n1' },
    { component: 'kube-scheduler', what: 'bind', object: 'pods/a/b', atMs: 1016, durationMs: 2, result: 'bound' },
    { component: 'runtime', what: 'StartContainer', object: 'pods/a/b', atMs: 1030, durationMs: 5, result: 'c"x"' },
  ],
}

test('ARC-07 hops that overlap are cut where the next begins, and unknown ones take no time', () => {
  const { hops, totalMs } = hopsOf(parts)
  assert.equal(totalMs, 35)
  assert.equal(
    hops.reduce((sum, { gapMs, durationMs }) => sum + gapMs + durationMs, 0),
    35,
  )
  assert.deepEqual(
    hops.slice(6).map(({ name, atMs, durationMs, gapMs, source }) => [name, atMs, durationMs, gapMs, source]),
    [
      ['storage', 1011, 3, 1, 'measured'],
      ['watch fan-out', 1014, 1, 0, 'measured'],
      ['controllers', 1015, 0, 0, 'none'],
      ['scheduler', 1015, 3, 0, 'measured'],
      ['kubelet', 1018, 0, 0, 'none'],
      ['runtime', 1030, 5, 12, 'measured'],
    ],
  )
})

test('LRN-01 the HTML file holds names as text, no script and no address', () => {
  const html = toHtml(hopsOf(parts))
  assert.match(html, /&lt;b&gt;&amp;/)
  assert.doesNotMatch(html, /<b>|<script|https?:|src=|href=/)
  assert.match(html, /default-src 'none'/)
})

test('ARC-07 the OpenTelemetry form has a span for the whole and one below it for each hop', () => {
  const found = toOtlp(hopsOf(parts), 'f'.repeat(32)) as {
    resourceSpans: { scopeSpans: { spans: { parentSpanId?: string; spanId: string; startTimeUnixNano: string; endTimeUnixNano: string }[] }[] }[]
  }
  const [root, ...hops] = found.resourceSpans[0]?.scopeSpans[0]?.spans ?? []
  assert.equal(hops.length, 12)
  assert.deepEqual([root?.startTimeUnixNano, root?.endTimeUnixNano], ['1000000000', '1035000000'])
  assert.ok(hops.every(({ parentSpanId, spanId }) => parentSpanId === root?.spanId && /^[0-9a-f]{16}$/.test(spanId)))
})

test('LRN-01 the waterfall draws one bar a hop at its time', () => {
  const lines = waterfall(hopsOf(parts)).split('\n')
  assert.equal(lines.length, 15)
  assert.match(lines[3] ?? '', /^2 +TLS +00:00:01\.001000 +\+0\.00 +4\.0 +█{3} /)
})
