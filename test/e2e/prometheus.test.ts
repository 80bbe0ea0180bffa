/** Debian's Prometheus over a cluster of simulated nodes: all pages in each format, the queries of the reference documents, what kubernetes-mixin reads. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { missingProgram } from '../support/testPackages.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { joins, mixinMetrics } from './support/mixinMetrics.ts'
import { type Access, lintMetrics, nodesOf, Prometheus, prometheusAccess, prometheusConfig, scrapingJobs } from './support/prometheus.ts'

const skip = obstacleToCluster(false) || missingProgram('prometheus', 'prometheus') || obstacleToEtcd()
const options = { skip, timeout: 180_000 }
const name = 'e2e-prom'

const labels = { app: 'web' }
const container = {
  name: 'main',
  image: 'example.com/web:1.0',
  ports: [{ name: 'http', containerPort: 8080 }],
  livenessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
  resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
}
const objects = [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [container] } } },
  },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 'http' }] } },
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'empty' }, spec: { selector: { app: 'none' }, ports: [{ port: 80 }] } },
]

let cluster: LocalCluster
let access: Access
let prometheus: Prometheus

/** Every request is sampled, and its spans go nowhere. */
const tracing = 'apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:1\nsamplingRatePerMillion: 1000000\n'

before(async () => {
  if (skip) return
  const file = path.join(fs.mkdtempSync('/tmp/skiff-tracing-'), 'tracing.yaml')
  fs.writeFileSync(file, tracing)
  const serverArgs = ['reference-metrics=true', `tracing-config-file=${file}`].flatMap((arg) => ['--kube-apiserver-arg', arg])
  cluster = await LocalCluster.start(name, ['--etcd', '1', '--runtime', 'simulated', '--simulated-nodes', '2', ...serverArgs])
  fs.rmSync(path.dirname(file), { recursive: true })
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
  access = await prometheusAccess(cluster)
  prometheus = await Prometheus.start(path.join(cluster.dir, 'prometheus'), prometheusConfig(access, await nodesOf(cluster), [await etcdJob()]), [
    '--enable-feature=exemplar-storage',
  ])
})

after(async () => {
  if (skip) return
  await prometheus?.stop()
  await cluster?.delete()
})

/** The cluster's own etcd, with the client certificate of the API server. */
async function etcdJob(): Promise<object> {
  const { etcd } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as { readonly etcd: readonly { readonly url: string }[] }
  const pki = path.join(cluster.dir, 'home/clusters', name, 'pki/etcd')
  const certificates = { ca_file: `${pki}/ca.crt`, cert_file: `${pki}/apiserver-etcd-client.crt`, key_file: `${pki}/apiserver-etcd-client.key` }
  const targets = etcd.map(({ url }) => new URL(url).host)
  return { job_name: 'etcd', scheme: 'https', tls_config: certificates, static_configs: [{ targets }] }
}

test('OBS-01 OBS-10 OBS-13 every page of the API server and of the kubelets is scraped as OpenMetrics', options, async () => {
  const up = await prometheus.untilUp([...scrapingJobs, 'etcd'])
  assert.equal(up.filter(({ labels: { job } }) => job === 'cadvisor').length, 2, 'both nodes')
  const withSamples = async () => (await prometheus.query('scrape_samples_scraped > 0')).map(({ metric }) => metric.job ?? '')
  // Simulated kubelets are counted on the API server's page; their own has nothing of a process.
  const expected = scrapingJobs.filter((job) => !['kubelet', 'kubelet-slis'].includes(job))
  await eventually('samples of every page', 30_000, withSamples, (jobs) => expected.every((job) => jobs.includes(job)))
})

/** The queries of the reference documents, by what they show. A summary of pod start times is a histogram since v1.19. */
const queries: Readonly<Record<string, string>> = {
  'OBS-01 API request latency': 'histogram_quantile(0.99, rate(apiserver_request_duration_seconds_bucket[5m]))',
  'OBS-02 API server error rate': 'sum(rate(apiserver_request_total{code=~"5.."}[5m])) / sum(rate(apiserver_request_total[5m]))',
  'OBS-03 etcd request latency': 'histogram_quantile(0.99, rate(etcd_request_duration_seconds_bucket[5m]))',
  'OBS-04 etcd database size': 'etcd_mvcc_db_total_size_in_bytes',
  'OBS-05 time to schedule pods': 'scheduler_scheduling_duration_seconds{quantile="0.99"}',
  'OBS-06 pending pods': 'scheduler_pending_pods',
  'OBS-07 depth of the work queues': 'workqueue_depth',
  'OBS-07 duration of syncs': 'histogram_quantile(0.99, rate(controller_sync_duration_seconds_bucket[5m]))',
  'OBS-09 pod start time': 'histogram_quantile(0.99, rate(kubelet_pod_start_duration_seconds_bucket[5m]))',
  'OBS-10 CPU usage of containers': 'sum(rate(container_cpu_usage_seconds_total[5m])) by (pod, container)',
  'OBS-10 memory of containers': 'container_memory_working_set_bytes',
}

for (const [what, query] of Object.entries(queries))
  test(`${what}: the query of the reference documents has a value`, options, async () => {
    const ask = async () => {
      // A 503, for the rate of errors.
      if (query.includes('5..')) await cluster.kubectl(['get', '--raw', '/api/v1/namespaces/default/services/empty:80/proxy/'])
      return prometheus.query(query)
    }
    const result = await eventually(query, 60_000, ask, (samples) => samples.length > 0)
    assert.ok(result.every(({ value: [, value] }) => value === 'NaN' || Number(value) >= 0))
  })

test('OBS-06 pending pods are counted by queue', options, async () => {
  const queues = (await prometheus.query('scheduler_pending_pods')).map(({ metric }) => metric.queue)
  assert.deepEqual([...new Set(queues)].sort(), ['active', 'backoff', 'gated', 'unschedulable'])
})

test('OBS-13 metrics and labels that kubernetes-mixin reads are there, and join', options, async () => {
  const wanted = mixinMetrics.filter(({ onRealNodes }) => !onRealNodes)
  const missing = async () => {
    const checks = wanted.map(async ({ metric, select = '', labels: names = [], job }) => {
      const match = `${metric}{job="${job}"${select === '' ? '' : `,${select}`}}`
      const found = await prometheus.series(match)
      // Prometheus has no empty labels: a label is there when one of the series has it.
      const lacking = names.filter((label) => !found.some((one) => label in one))
      return found.length === 0 ? [`no series ${match}`] : lacking.map((label) => `no label ${label} in ${match}`)
    })
    return (await Promise.all(checks)).flat()
  }
  await eventually('all metrics of the mixin', 60_000, missing, (faults) => faults.length === 0)
  for (const { expression } of joins.filter(({ onRealNodes }) => !onRealNodes))
    await eventually(
      expression,
      60_000,
      () => prometheus.query(expression),
      (samples) => samples.length > 0,
    )
})

test('OBS-01 OBS-14 Prometheus keeps the traces of sampled requests as exemplars', options, async () => {
  const found = await eventually(
    'exemplars',
    60_000,
    () => prometheus.exemplars('apiserver_request_duration_seconds_bucket'),
    (exemplars) => exemplars.length > 0,
  )
  assert.ok(found.every(({ trace_id = '', span_id = '' }) => /^[0-9a-f]{32}$/.test(trace_id) && /^[0-9a-f]{16}$/.test(span_id)))
})

test('OBS-01 a Prometheus with native histograms scrapes all pages as protobuf, with the same values', options, async () => {
  const other = await Prometheus.start(path.join(cluster.dir, 'prometheus-protobuf'), prometheusConfig(access, await nodesOf(cluster)), [
    '--enable-feature=native-histograms',
  ])
  try {
    await other.untilUp(scrapingJobs)
    const total = 'sum by (resource) (kube_pod_resource_request{resource=~"cpu|memory"})'
    const ask = async () =>
      [await other.query(total), await prometheus.query(total)].map((result) => result.map(({ metric, value }) => [metric.resource, value[1]]).sort())
    const [values] = await eventually('requests of the pods', 30_000, ask, ([one]) => (one?.length ?? 0) === 2)
    assert.deepEqual(values, (await ask())[1])
    const quantile = 'histogram_quantile(0.9, sum by (le) (apiserver_request_duration_seconds_bucket{job="kube-apiserver"}))'
    const [sample] = await eventually(
      quantile,
      30_000,
      () => other.query(quantile),
      (samples) => samples.length > 0,
    )
    assert.ok(Number(sample?.value[1]) > 0)
  } finally {
    await other.stop()
  }
})

test('OBS-01 promtool has nothing to say about Skiff’s own metrics, and no page without help', options, async () => {
  const node = `/api/v1/nodes/${name}-sim-1/proxy`
  const pages = ['/metrics', '/metrics/slis', '/metrics/resources', ...['cadvisor', 'resource', 'probes'].map((page) => `${node}/metrics/${page}`)]
  for (const page of pages) {
    const complaints = await lintMetrics(`${await cluster.must(['get', '--raw', page])}\n`)
    const ours = complaints.filter((line) => line.startsWith('skiff_') || /no help text|parse|duplicate/i.test(line))
    assert.deepEqual(ours, [], page)
  }
})
