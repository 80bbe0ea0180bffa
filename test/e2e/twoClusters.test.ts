/**
 * Clusters with real nodes side by side on one host: whatever an API server calls, it reaches its own cluster, also while another is created, killed or deleted.
 * The host has no routes to pods and services. Real containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { testCertificates } from '../../src/testing/testCertificates.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'
import { whoGroup, whoHosts, whoObjects, whoPod } from './support/whoServer.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 240_000 }
const names = { a: 'e2e-left', b: 'e2e-right', c: 'e2e-third' } as const
const clusters = new Map<string, LocalCluster>()
let before_: ReturnType<typeof hostTraces>
let certificate: { cert: string; key: string }

interface Status {
  readonly nodes: readonly { readonly name: string; readonly address: string }[]
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
}

function clusterOf(name: string): LocalCluster {
  const cluster = clusters.get(name)
  assert.ok(cluster, `${name} is not there`)
  return cluster
}

const status = async (name: string) => JSON.parse((await clusterOf(name).skiff(['status', name, '-o', 'json'])).stdout) as Status

/** Creates a cluster with the pod that names it on each node. */
async function start(name: string, flags: readonly string[], nodes: number): Promise<void> {
  const cluster = await LocalCluster.start(name, ['--nodes', String(nodes), ...flags])
  clusters.set(name, cluster)
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  const pods = Array.from({ length: nodes }, (_, i) => whoPod(name, i + 1, `${name}-node-${i + 1}`, certificate))
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...pods, ...whoObjects(certificate.cert)] }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', ...pods.map(({ metadata }) => `pod/${metadata.name}`), '--timeout=60s'], 90_000)
  await cluster.must(['wait', '--for=condition=Available', `apiservice/v1.${whoGroup}`, '--timeout=60s'], 90_000)
}

async function remove(name: string): Promise<void> {
  await clusterOf(name).delete()
  clusters.delete(name)
}

before(async () => {
  if (skip) return
  before_ = hostTraces()
  certificate = await testCertificates('CN=who', whoHosts)
  await start(names.a, [], 2)
  await start(names.b, ['--simulated-nodes', '1'], 2)
})

after(async () => {
  for (const cluster of clusters.values()) await cluster.delete()
})

/** A pod's request to its API server, whose certificate must be of the pod's own cluster. */
const askApi = `
const ca = require('fs').readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/ca.crt')
require('https').get({ host: 'kubernetes.default.svc', path: '/version', ca, timeout: 5000 }, (r) => { console.log(r.statusCode); process.exit(0) })
  .on('timeout', () => { console.log('timeout'); process.exit(1) })
  .on('error', (error) => { console.log(error.message); process.exit(1) })
`

/** Every way in which the API server of a cluster connects to the cluster's pods, and the pods to it. */
async function checkPaths(name: string, nodes: number): Promise<void> {
  const cluster = clusterOf(name)
  const raw = (path: string) => cluster.must(['get', '--raw', path])
  const proxied = '/api/v1/namespaces/default'
  for (let i = 1; i <= nodes; i++) {
    assert.equal(await raw(`${proxied}/pods/who-${i}:8080/proxy/`), `page of ${name} on who-${i}`)
    assert.equal(await raw(`${proxied}/pods/https:who-${i}:8443/proxy/`), `page of ${name} on who-${i}`)
    assert.equal(await cluster.must(['exec', `who-${i}`, '--', '/bin/sh', '-c', 'echo $CLUSTER $(hostname)']), `${name} who-${i}`)
    assert.equal(await cluster.must(['exec', `who-${i}`, '--', process.execPath, '-e', askApi]), '200')
  }
  for (const service of ['who:http', 'https:who:https']) {
    const seen = new Set<string>()
    const ask = async () => seen.add(await raw(`${proxied}/services/${service}/proxy/`))
    await eventually(`pages of ${nodes} pods by ${service}`, 15_000, ask, (pages) => pages.size === nodes)
    for (const page of seen) assert.match(page, new RegExp(`^page of ${name} on who-`))
  }
  const created = await cluster.kubectl(['create', 'configmap', `asked-${Date.now()}`])
  assert.deepEqual([created.code, created.stderr.trim()], [0, `Warning: validated in ${name}`])
  assert.equal(JSON.parse(await raw(`/apis/${whoGroup}/v1/whos/me`)).cluster, name)
}

/** Where pods and Services of a cluster have addresses. */
async function rangesOf(name: string): Promise<{ pods: string[]; services: string }> {
  const pods = (await clusterOf(name).must(['get', 'nodes', '-o', 'jsonpath={.items[*].spec.podCIDR}'])).split(' ')
  return { pods, services: await clusterOf(name).must(['get', 'servicecidr', 'kubernetes', '-o', 'jsonpath={.spec.cidrs[0]}']) }
}

test('NET-01 API-29 each of two clusters reaches its own pods by every path', options, async () => {
  await checkPaths(names.a, 2)
  await checkPaths(names.b, 2)
})

test('NET-01 two clusters of one host have no range in common, and the host has no route to pods or Services', options, async () => {
  const [a, b] = [await rangesOf(names.a), await rangesOf(names.b)]
  const start = (range: string) => range.split('.').slice(0, 2).join('.')
  assert.equal(new Set([a.pods[0] ?? '', b.pods[0] ?? '', a.services, b.services].map(start)).size, 4)
  const routes = execFileSync('ip', ['route', 'show', 'table', 'all'], { encoding: 'utf8' })
  for (const range of [...a.pods, ...b.pods, a.services, b.services]) assert.ok(!routes.includes(`${start(range)}.`), `${range} is in ${routes}`)
})

test('NET-01 up refuses a range of another cluster or of the host and names its user', options, async () => {
  const { pods } = await rangesOf(names.a)
  const [{ address = '' } = {}] = (await status(names.b)).nodes
  const refusals = [
    [['--pod-cidr', `${pods[0]?.split('.').slice(0, 2).join('.')}.0.0/16`], new RegExp(`overlaps .* of the pods of cluster "${names.a}"`)],
    [['--service-cidr', `${address.split('.').slice(0, 3).join('.')}.0/24`], /--service-cidr \S+ overlaps \S+ of interface skiff-/],
  ] as const
  for (const [flags, message] of refusals) {
    const refused = await clusterOf(names.a).skiff(['up', 'refused', '--nodes', '1', ...flags])
    assert.equal(refused.code, 7, refused.stderr)
    assert.match(refused.stderr, message)
  }
  assert.equal((await clusterOf(names.a).skiff(['ls'])).stdout.includes('refused'), false)
})

test('API-29 the proxy of a simulated pod in a cluster with real nodes answers 503 with the reason', options, async () => {
  const cluster = clusterOf(names.b)
  const pod = whoPod(names.b, 9, `${names.b}-sim-1`, certificate)
  await cluster.mustWith(JSON.stringify({ ...pod, metadata: { name: 'simulated' } }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/simulated', '--timeout=30s'])
  const { code, stderr } = await cluster.kubectl(['get', '--raw', '/api/v1/namespaces/default/pods/simulated:8080/proxy/'])
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`belongs to node ${names.b}-sim-1, which is simulated`))
})

test('API-29 a dialer that is killed comes back, and the paths work again', options, async () => {
  const { pids } = await status(names.b)
  const dialer = pids.find(({ role }) => role === 'dialer')
  assert.ok(dialer)
  process.kill(dialer.pid, 'SIGKILL')
  await checkPaths(names.b, 2)
  const after_ = (await status(names.b)).pids.find(({ role }) => role === 'dialer')
  assert.notEqual(after_?.pid, dialer.pid)
})

async function killAll(name: string): Promise<void> {
  for (const { pid } of (await status(name)).pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      // It ended with its parent.
      assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
    }
  }
}

test('NET-01 a cluster whose every process was killed starts again and reaches its own pods', options, async () => {
  await killAll(names.a)
  await checkPaths(names.b, 2)
  const started = await clusterOf(names.a).skiff(['start', names.a])
  assert.equal(started.code, 0, started.stderr)
  await clusterOf(names.a).must(['wait', '--for=condition=Ready', 'pod/who-1', 'pod/who-2', '--timeout=60s'], 90_000)
  await eventually(
    'an available extension API',
    30_000,
    () => clusterOf(names.a).kubectl(['get', '--raw', `/apis/${whoGroup}/v1/whos/me`]),
    ({ code }) => code === 0,
  )
  await checkPaths(names.a, 2)
  await checkPaths(names.b, 2)
})

test('NET-01 the older cluster is deleted after all its processes were killed; the newer one is not affected', options, async () => {
  await killAll(names.a)
  await remove(names.a)
  await checkPaths(names.b, 2)
})

test('NET-01 a third cluster takes the ranges that are free again; deleting it, the newest, leaves the other as it was', options, async () => {
  await start(names.c, [], 1)
  assert.match((await rangesOf(names.c)).pods[0] ?? '', /^10\.\d+\.0\.0\/24$/)
  await checkPaths(names.c, 1)
  await checkPaths(names.b, 2)
  await remove(names.c)
  await checkPaths(names.b, 2)
})

test('NET-01 nothing is left on the host after the last cluster is deleted', options, async () => {
  await remove(names.b)
  assert.deepEqual(newTraces(before_), {})
})
