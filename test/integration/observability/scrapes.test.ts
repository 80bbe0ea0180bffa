/** Every /metrics page in each of its formats: the same families and series, and exemplars of sampled traces. */
import assert from 'node:assert/strict'
import https from 'node:https'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { kubeletConfig } from '#kubelet/core/config'
import type { FrozenPod } from '#kubelet/core/containers'
import type { KubeletView } from '#kubelet/core/kubeletView'
import { createProbeMetrics } from '#kubelet/probes/probeMetrics'
import { createReadOnlyServer } from '#kubelet/server/kubeletServer'
import { componentFamilies, createComponentMetrics, scrapeComponent } from '#main/componentMetrics'
import { startTracing } from '#main/tracing/startTracing'
import { startTestApiServer, type TestListener } from '#testing/apiServer'
import { readFamilies } from '#testing/prometheusMessages'
import { realClock } from '#testing/realClock'
import { startHttpCollector } from '../../support/traceCollector.ts'

const accepted = {
  text: 'text/plain;version=0.0.4',
  openMetrics: 'application/openmetrics-text;version=1.0.0',
  protobuf: 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited',
} as const

interface Scraped {
  readonly type: string
  readonly body: Buffer
}
type Scrape = (path: string, accept: string) => Promise<Scraped>

const linesOf = ({ body }: Scraped) => body.toString().split('\n')
const familiesIn = (lines: readonly string[]) => lines.filter((line) => line.startsWith('# TYPE ')).map((line) => line.split(' ')[2] ?? '')
/** Families without a sample are left out, and the process may have no such request at one of the scrapes. */
const lasting = (names: readonly string[]) => names.filter((name) => name !== 'nodejs_active_requests')

/** Names of families in all formats are the same but for the `_total` of counters. */
async function checkPage(scrape: Scrape, path: string): Promise<string[]> {
  const [text, openMetrics, protobuf] = await Promise.all([scrape(path, accepted.text), scrape(path, accepted.openMetrics), scrape(path, accepted.protobuf)])
  assert.match(text.type, /^text\/plain; version=0\.0\.4; /, path)
  assert.match(openMetrics.type, /^application\/openmetrics-text; version=1\.0\.0; /, path)
  assert.match(protobuf.type, /^application\/vnd\.google\.protobuf; proto=io\.prometheus\.client\.MetricFamily; encoding=delimited/, path)
  assert.deepEqual(linesOf(openMetrics).slice(-2), ['# EOF', ''], path)
  const names = familiesIn(linesOf(text))
  assert.equal(new Set(names).size, names.length, `${path} has each family once`)
  const withoutTotal = (all: readonly string[]) => lasting(all).map((name) => name.replace(/_total$/, ''))
  assert.deepEqual(withoutTotal(familiesIn(linesOf(openMetrics))), withoutTotal(names), path)
  assert.deepEqual(lasting(readFamilies(protobuf.body).map(({ name }) => name)), lasting(names), path)
  return names
}

const overTls =
  ({ port, ca, token }: TestListener): Scrape =>
  (path, accept) =>
    new Promise((resolve, reject) => {
      const headers = { accept, authorization: `Bearer ${token}` }
      const asking = https.get({ host: '127.0.0.1', port, path, ca, headers, agent: false }, (response) => {
        buffer(response).then((body) => resolve({ type: response.headers['content-type'] ?? '', body }), reject)
      })
      asking.on('error', reject)
    })

test('OBS-01 OBS-02 the pages of the API server have the same families in each format, and OpenMetrics shows the traces of requests', async () => {
  const metrics = createComponentMetrics()
  const tools = { clock: realClock, random: seededRandom(7), log: noLog, metrics }
  const collector = await startHttpCollector()
  const { tracer, close } = startTracing({ endpoint: collector.endpoint, samplingRatePerMillion: 1_000_000 }, tools)
  const server = await startTestApiServer({ metrics, tracer, deps: () => ({ scrape: (accept) => scrapeComponent(metrics, accept) }) })
  try {
    const scrape = overTls(await server.listen())
    await scrape('/livez', '*/*')
    await scrape('/api/v1/nodes', 'application/json')
    for (const path of ['/metrics', '/metrics/slis']) assert.ok((await checkPage(scrape, path)).length > 1, path)
    const exemplar =
      /^apiserver_request_duration_seconds_bucket\{verb="LIST",.*resource="nodes",.*\} \d+ # \{trace_id="[0-9a-f]{32}",span_id="[0-9a-f]{16}"\} [\d.e-]+ [\d.]+$/
    assert.ok(linesOf(await scrape('/metrics', accepted.openMetrics)).some((line) => exemplar.test(line)))
    assert.ok(linesOf(await scrape('/metrics', accepted.text)).every((line) => !line.includes('trace_id')))
    const durations = readFamilies((await scrape('/metrics', accepted.protobuf)).body).find(({ name }) => name === 'apiserver_request_duration_seconds')
    assert.ok(durations?.metrics.some(({ exemplars }) => /^[0-9a-f]{32}$/.test(exemplars[0]?.trace_id ?? '')))
  } finally {
    await server.close()
    await close()
    await collector.close()
  }
})

test('OBS-01 OBS-10 the pages of the kubelet have the same families in each format', async () => {
  const probes = createProbeMetrics()
  const pod = { metadata: { namespace: 'ns', name: 'web', uid: 'u' }, spec: { containers: [] } } as unknown as FrozenPod
  probes.observe(pod, 'main', 'liveness', 'Success', 0.02)
  const view = {
    config: kubeletConfig({ nodeName: 'n1' }),
    runtime: { listContainers: async () => [], listPodSandbox: async () => [], listContainerStats: async () => [] },
    pods: () => [],
    podStatus: () => undefined,
    context: () => undefined,
    probeMetrics: probes.families,
    latestLoopEntryMs: () => undefined,
  }
  const metrics = createComponentMetrics()
  const deps = { view: view as unknown as KubeletView, clock: realClock, log: noLog, metrics, metricFamilies: () => componentFamilies(metrics) }
  const server = createReadOnlyServer(deps, { address: '127.0.0.1', port: 0 })
  const stop = new AbortController()
  const running = server.run(stop.signal)
  try {
    const base = `http://127.0.0.1:${await server.listening}`
    const scrape: Scrape = async (path, accept) => {
      const answer = await fetch(base + path, { headers: { accept } })
      return { type: answer.headers.get('content-type') ?? '', body: Buffer.from(await answer.arrayBuffer()) }
    }
    await fetch(`${base}/healthz`)
    assert.deepEqual(await checkPage(scrape, '/metrics/probes'), ['prober_probe_duration_seconds', 'prober_probe_total'])
    assert.deepEqual(await checkPage(scrape, '/metrics/slis'), ['kubernetes_healthcheck', 'kubernetes_healthchecks_total'])
    assert.ok((await checkPage(scrape, '/metrics')).includes('nodejs_heap_size_used_bytes'))
    assert.ok((await checkPage(scrape, '/metrics/cadvisor')).includes('container_memory_working_set_bytes'))
    assert.ok((await checkPage(scrape, '/metrics/resource')).includes('node_cpu_usage_seconds_total'))
  } finally {
    stop.abort()
    await running
  }
})
