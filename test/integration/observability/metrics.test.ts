/** Metrics of a whole cluster in one process, by upstream's list of documented metrics and by the queries of dashboards. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { deployments, nodes, pods } from '#client/builtIn'
import { createComponentMetrics } from '#main/componentMetrics'
import { documentedMetrics } from '#main/documentedMetrics'
import type { PrometheusMetrics } from '#main/prometheus'
import { startCluster, type TestCluster } from '#testing/cluster'

const namespace = 'default'
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'a' }] } }
const deployment = { metadata: { namespace, name: 'web' }, spec: { replicas: 1, selector: { matchLabels: labels }, template } }

async function withCluster(work: (cluster: TestCluster, metrics: PrometheusMetrics) => Promise<void>): Promise<void> {
  const metrics = createComponentMetrics()
  metrics.describe(documentedMetrics)
  const cluster = await startCluster({ clock: 'real', observers: { metrics }, apiServerArgs: ['--enable-priority-and-fairness=true'] })
  try {
    // Until then the pod would be tried twice.
    await cluster.until(async () => {
      const { items } = await cluster.client.of(nodes).list()
      return items.length > 0 && items.every(({ spec }) => !spec?.taints?.length)
    })
    await cluster.client.of(deployments).create(deployment)
    await cluster.until(async () => {
      const { items } = await cluster.client.of(pods).list({ namespace })
      return items.some(({ status }) => status?.phase === 'Running')
    })
    await work(cluster, metrics)
  } finally {
    await cluster.close()
  }
}

/** The metrics of docs/observability.md that are not there, or not under /metrics. */
function excused(): ReadonlySet<string> {
  const page = readFileSync(new URL('../../../docs/observability.md', import.meta.url), 'utf8')
  const [, table = ''] = /## Metrics that are absent or elsewhere\n([\s\S]*?)\n## /.exec(page) ?? []
  return new Set([...table.matchAll(/^\| `([a-z_]+)`/gm)].map(([, name = '']) => name))
}

test('OBS-02 OBS-03 OBS-05 OBS-06 OBS-07 every STABLE and BETA metric of v1.36 is registered with its type, labels and stability, or the page names the reason', async () => {
  await withCluster(async (_, metrics) => {
    const { registered } = metrics
    const absent = [...documentedMetrics.values()].filter(({ name }) => !registered.has(name)).map(({ name }) => name)
    assert.deepEqual(
      absent.filter((name) => !excused().has(name)),
      [],
    )
    assert.deepEqual(
      [...excused()].filter((name) => registered.has(name) || !documentedMetrics.has(name)),
      [],
      'the page excuses a metric that is there',
    )
    const wrong = [...documentedMetrics.values()].flatMap(({ name, type, labels }) => {
      const found = registered.get(name)
      if (!found) return []
      const own = [...(found.options.labels ?? [])].sort()
      const isRight = (type === 'Custom' || found.type === type.toLowerCase()) && own.join() === [...labels].sort().join()
      return isRight ? [] : [`${name}: ${found.type} ${own} instead of ${type} ${labels}`]
    })
    assert.deepEqual(wrong, [])
    const text = metrics.render()
    for (const { name, stability } of documentedMetrics.values()) {
      const help = new RegExp(`^# HELP ${name} (.*)$`, 'm').exec(text)?.[1]
      if (help !== undefined) assert.ok(help.startsWith(`[${stability}] `), `${name}: ${help}`)
    }
    assert.match(text, /^# HELP workqueue_depth \[BETA\] /m)
    assert.match(text, /^# HELP etcd_request_duration_seconds \[ALPHA\] /m)
  })
})

test('OBS-02 OBS-03 OBS-05 OBS-06 OBS-07 the metrics of the reference dashboards have samples after one Deployment', async () => {
  await withCluster(async (_, metrics) => {
    const text = metrics.render()
    const samples: readonly RegExp[] = [
      /^apiserver_request_total\{verb="POST",dry_run="",group="apps",version="v1",resource="deployments",subresource="",scope="resource",component="apiserver",code="201"\} 1$/m,
      /^apiserver_request_duration_seconds_bucket\{verb="POST",.*resource="deployments",.*le="\+Inf"\} 1$/m,
      /^etcd_request_duration_seconds_bucket\{operation="create",group="apps",resource="deployments",le="\+Inf"\} 1$/m,
      /^etcd_requests_total\{operation="create",group="apps",resource="replicasets"\} 1$/m,
      /^apiserver_storage_events_received_total\{group="apps",resource="deployments"\} [1-9]/m,
      /^scheduler_scheduling_attempt_duration_seconds_count\{result="scheduled",profile="default-scheduler"\} 1$/m,
      /^scheduler_pod_scheduling_sli_duration_seconds_count\{attempts="1"\} 1$/m,
      ...['active', 'backoff', 'unschedulable', 'gated'].map((queue) => new RegExp(`^scheduler_pending_pods\\{queue="${queue}"\\} 0$`, 'm')),
      /^workqueue_depth\{name="deployment"\} 0$/m,
      /^workqueue_depth\{name="replicaset"\} 0$/m,
      /^kubelet_pod_start_duration_seconds_count 1$/m,
      /^registered_metrics_total\{stability_level="STABLE",deprecated_version=""\} [1-9]/m,
    ]
    for (const sample of samples) assert.match(text, sample)
  })
})

test('OBS-02 names that clients invent make no series: paths, resources and methods', async () => {
  await withCluster(async (cluster, metrics) => {
    const { url, ca, token } = await cluster.listen()
    const { request } = await import('node:https')
    const ask = (method: string, path: string) =>
      new Promise<void>((resolve, reject) => {
        const asked = request(new URL(path, url), { method, ca, headers: { authorization: `Bearer ${token}` } }, (answer) => {
          answer.resume().once('end', resolve)
        })
        asked.once('error', reject)
        asked.end()
      })
    for (let at = 0; at < 20; at++) {
      await ask('GET', `/invented-${at}`)
      await ask('GET', `/api/v1/namespaces/default/invented-${at}`)
      await ask('PROPFIND', `/invented-${at}`)
    }
    const text = metrics.render()
    assert.doesNotMatch(text, /invented/)
    assert.doesNotMatch(text, /PROPFIND/)
    assert.match(
      text,
      /^apiserver_request_total\{verb="GET",dry_run="",group="",version="",resource="",subresource="",scope="",component="apiserver",code="404"\} 40$/m,
    )
    assert.match(text, /^apiserver_request_total\{verb="other",.*code="40\d"\} 20$/m)
  })
})
