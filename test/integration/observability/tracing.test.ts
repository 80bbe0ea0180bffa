/** Traces of a whole cluster in one process, as a collector gets them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { traceAnnotation } from '#base/traceContext'
import { VirtualClock } from '#base/virtualClock'
import { deployments, mutatingWebhookConfigurations, pods } from '#client/builtIn'
import { createPrometheusMetrics } from '#main/prometheus'
import { startTracing } from '#main/tracing/startTracing'
import { startCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import { type CollectedSpan, startGrpcCollector, startHttpCollector } from '../../support/traceCollector.ts'
import { startWebhookServer } from '../../support/webhookServer.ts'

const namespace = 'default'
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'a' }] } }
const deployment = { metadata: { namespace, name: 'web' }, spec: { replicas: 1, selector: { matchLabels: labels }, template } }

const toolsOf = () => ({ clock: realClock, random: seededRandom(7), log: noLog, metrics: createPrometheusMetrics() })

test('OBS-14 the create of a Deployment is one trace over API server, webhook, store, controllers, scheduler and kubelet, with --tracing-mark-objects', async () => {
  const collector = await startGrpcCollector()
  const { tracer, close } = startTracing({ endpoint: collector.endpoint, samplingRatePerMillion: 1_000_000, marksObjects: true }, toolsOf())
  const hooks = await startWebhookServer()
  const cluster = await startCluster({ clock: 'real', observers: { tracer } })
  try {
    hooks.on('/mutate', () => ({ allowed: true }))
    await cluster.client.of(mutatingWebhookConfigurations).create({
      metadata: { name: 'traced' },
      webhooks: [
        {
          name: 'traced.example.com',
          clientConfig: hooks.client('/mutate'),
          rules: [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] }],
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    })
    await cluster.until(async () => {
      await cluster.client.of(deployments).create({ ...deployment, metadata: { namespace, generateName: 'probe-' } }, { dryRun: true })
      return hooks.askedAt('/mutate').length > 0
    })
    const made = await cluster.client.of(deployments).create(deployment)
    await cluster.until(async () => {
      const { items } = await cluster.client.of(pods).list({ namespace, labelSelector: 'app=web' })
      return items.some(({ status }) => status?.phase === 'Running')
    })
    const traceId = made.metadata.annotations?.[traceAnnotation]?.split('-')[1]
    await cluster.close()
    await close()
    const spans = collector.spans.filter((span) => span.traceId === traceId)
    const has = (service: string, name: string) => assert.ok(find(spans, service, name), `${service} ${name} is missing in\n${shown(spans)}`)
    has('apiserver', 'POST /apis/apps/v1/namespaces/{:namespace}/deployments')
    has('apiserver', 'Admit')
    has('apiserver', 'Call mutating webhook')
    has('apiserver', 'Validate')
    has('apiserver', 'Create etcd3')
    has('kube-controller-manager', 'reconcile deployment-controller')
    has('apiserver', 'POST /apis/apps/v1/namespaces/{:namespace}/replicasets')
    has('kube-controller-manager', 'reconcile replicaset-controller')
    has('apiserver', 'POST /api/v1/namespaces/{:namespace}/pods')
    has('kube-scheduler', 'Schedule')
    has('kube-scheduler', 'Bind')
    has('apiserver', 'POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding')
    has('kubelet', 'syncPod')
    const ids = new Set(spans.map(({ spanId }) => spanId))
    assert.deepEqual(
      spans.filter(({ parentSpanId }) => !ids.has(parentSpanId)).map(({ name }) => name),
      ['POST /apis/apps/v1/namespaces/{:namespace}/deployments'],
    )
    assert.ok(spans.every(({ startNs, endNs }) => startNs > 0n && endNs >= startNs))
    const sent = hooks.asked.at(-1)?.headers.traceparent as string
    assert.deepEqual(sent.split('-').slice(0, 3), ['00', traceId, find(spans, 'apiserver', 'Call mutating webhook')?.spanId])
  } finally {
    await cluster.close()
    await hooks.close()
    await collector.close()
  }
})

for (const marksObjects of [true, false]) {
  test(`OBS-14 an annotation that a writer sets does not choose which work is sampled, ${marksObjects ? 'with' : 'without'} --tracing-mark-objects`, async () => {
    const collector = await startHttpCollector()
    const { tracer, close } = startTracing({ endpoint: collector.endpoint, samplingRatePerMillion: 0, marksObjects }, toolsOf())
    const cluster = await startCluster({ clock: 'real', observers: { tracer } })
    try {
      const annotations = { [traceAnnotation]: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }
      const made = await cluster.client.of(deployments).create({ ...deployment, metadata: { ...deployment.metadata, annotations } })
      if (marksObjects) assert.equal(made.metadata.annotations?.[traceAnnotation], undefined)
      await cluster.until(async () => (await cluster.client.of(pods).list({ namespace, labelSelector: 'app=web' })).items[0]?.status?.phase === 'Running')
      await cluster.close()
      await close()
      assert.deepEqual(collector.spans, [])
    } finally {
      await cluster.close()
      await collector.close()
    }
  })
}

test('OBS-14 without the flag, objects have no mark, and the trace of a request ends with it', async () => {
  const collector = await startHttpCollector()
  const { tracer, close } = startTracing({ endpoint: collector.endpoint, samplingRatePerMillion: 1_000_000 }, toolsOf())
  const cluster = await startCluster({ clock: 'real', controllers: false, scheduler: false, nodes: 0, observers: { tracer } })
  try {
    const made = await cluster.client.of(deployments).create(deployment)
    assert.equal(made.metadata.annotations?.[traceAnnotation], undefined)
    await cluster.close()
    await close()
    const request = find(collector.spans, 'apiserver', 'POST /apis/apps/v1/namespaces/{:namespace}/deployments')
    assert.deepEqual([request?.parentSpanId, request?.attributes['http.status_code'], request?.attributes['http.method']], ['', '201', 'POST'])
    const children = collector.spans.filter(({ parentSpanId }) => parentSpanId === request?.spanId).map(({ name }) => name)
    assert.ok(children.includes('Admit') && children.includes('Create etcd3'), children.join())
  } finally {
    await cluster.close()
    await collector.close()
  }
})

test('OBS-14 a rate of 0 records only what a caller samples; of a rate the traces are chosen by their ids', () => {
  const names: string[] = []
  const tracing = (samplingRatePerMillion: number) => {
    const { tracer } = startTracing({ samplingRatePerMillion }, { ...toolsOf(), clock: new VirtualClock() })
    return tracer
  }
  const never = tracing(0)
  const parent = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), sampled: true }
  never.span({ name: 'root', isRoot: true }, (span) => names.push(`root ${span !== undefined}`))
  never.span({ name: 'child', parent }, (span) => names.push(`child ${span?.traceId === parent.traceId}`))
  never.span({ name: 'unsampled', isRoot: true, parent: { ...parent, sampled: false } }, (span) => names.push(`unsampled ${span !== undefined}`))
  assert.deepEqual(names, ['root false', 'child true', 'unsampled false'])
  const half = tracing(500_000)
  let sampled = 0
  for (let at = 0; at < 2000; at++) half.span({ name: 'root', isRoot: true }, (span) => void (span && sampled++))
  assert.ok(sampled > 850 && sampled < 1150, String(sampled))
})

test('OBS-14 a collector that does not answer costs a bounded number of spans, which are counted', async () => {
  const metrics = createPrometheusMetrics()
  const clock = new VirtualClock()
  const logged: string[] = []
  const log = { ...noLog, error: (_: unknown, message: string) => void logged.push(message), with: () => log }
  const { tracer, close } = startTracing({ endpoint: '127.0.0.1:1', samplingRatePerMillion: 1_000_000 }, { clock, random: seededRandom(7), log, metrics })
  for (let at = 0; at < 10_000; at++) tracer.span({ name: 'work', isRoot: true }, () => {})
  const dropped = () => Number(/^skiff_trace_spans_dropped_total (\d+)$/m.exec(metrics.render())?.[1])
  assert.ok(dropped() >= 10_000 - 2048 - 512, String(dropped()))
  await close()
  assert.equal(dropped(), 10_000)
  assert.deepEqual(logged, ['Spans could not be sent to the collector'])
})

function find(spans: readonly CollectedSpan[], service: string, name: string): CollectedSpan | undefined {
  return spans.find((span) => span.service === service && span.name === name)
}

function shown(spans: readonly CollectedSpan[]): string {
  return spans.map(({ service, name, spanId, parentSpanId }) => `${service} ${name} ${spanId} < ${parentSpanId}`).join('\n')
}
