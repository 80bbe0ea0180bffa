/** Debian's Prometheus over a real node: the pages of its kubelet, and what kubernetes-mixin reads from them. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { missingProgram } from '../support/testPackages.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { joins, mixinMetrics } from './support/mixinMetrics.ts'
import { lintMetrics, nodesOf, Prometheus, prometheusAccess, prometheusConfig, scrapingJobs } from './support/prometheus.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true) || missingProgram('prometheus', 'prometheus')
const options = { skip, timeout: 180_000 }
const name = 'e2e-promreal'
let cluster: LocalCluster
let prometheus: Prometheus

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'main', image: 'web-app:1.0', command: ['sleep', '3600'], volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] }],
    volumes: [{ name: 'scratch', emptyDir: {} }],
  },
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, ['--nodes', '1'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  await cluster.mustWith(JSON.stringify(pod), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/web', '--timeout=60s'])
  prometheus = await Prometheus.start(path.join(cluster.dir, 'prometheus'), prometheusConfig(await prometheusAccess(cluster), await nodesOf(cluster)))
})

after(async () => {
  if (skip) return
  await prometheus?.stop()
  await cluster?.delete()
})

test('OBS-13 all pages of a real kubelet are scraped, and have what kubernetes-mixin reads, with its labels', options, async () => {
  await prometheus.untilUp(scrapingJobs)
  const missing = async () => {
    const checks = mixinMetrics.map(async ({ metric, select = '', labels = [], job }) => {
      const match = `${metric}{job="${job}"${select === '' ? '' : `,${select}`}}`
      const found = await prometheus.series(match)
      const lacking = labels.filter((label) => !found.some((one) => label in one))
      return found.length === 0 ? [`no series ${match}`] : lacking.map((label) => `no label ${label} in ${match}`)
    })
    return (await Promise.all(checks)).flat()
  }
  await eventually('all metrics of the mixin', 60_000, missing, (faults) => faults.length === 0)
  for (const { expression } of joins)
    await eventually(
      expression,
      60_000,
      () => prometheus.query(expression),
      (samples) => samples.length > 0,
    )
})

test('OBS-16 the event loop and the garbage collector of a node’s agent are measured', options, async () => {
  const one = 'nodejs_eventloop_lag_p99_seconds{job="kubelet"} and on (instance) nodejs_heap_size_used_bytes{job="kubelet"}'
  await eventually(
    one,
    30_000,
    () => prometheus.query(one),
    (samples) => samples.length > 0,
  )
})

test('OBS-16 skiff debug profile takes the CPU profile of a node’s agent and names the busiest functions', options, async () => {
  const file = path.join(cluster.dir, 'node.pb.gz')
  const { code, stdout, stderr } = await cluster.skiff(['debug', 'profile', `node/${name}-node-1`, '--name', name, '--seconds', '1', '-o', file])
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^cpu: \d/)
})

test('OBS-01 promtool has nothing to say about Skiff’s own metrics of a real kubelet', options, async () => {
  for (const page of ['', '/cadvisor', '/resource', '/probes', '/slis']) {
    const text = await cluster.must(['get', '--raw', `/api/v1/nodes/${name}-node-1/proxy/metrics${page}`])
    const ours = (await lintMetrics(`${text}\n`)).filter((line) => line.startsWith('skiff_') || /no help text|parse|duplicate/i.test(line))
    assert.deepEqual(ours, [], page)
  }
})
