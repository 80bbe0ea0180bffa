/**
 * HA-01, HA-04: `skiff up --control-planes 3`, with simulated nodes: three servers over three members of etcd behind one endpoint. Any of them may die while
 * clients write and watch: what was acknowledged stays, and another server continues the work of the dead one.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { configMaps } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { type Connection, connect } from '#main/package/connect'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToEtcd() || obstacleToCluster(false)
const options = { skip, timeout: 170_000 }
const names = ['server-1', 'server-2', 'server-3']
const works = ['controllers', 'scheduler', 'nodes']
let cluster: LocalCluster
let dir = ''
const audit = skip ? '' : fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-audit-'))

interface Status {
  readonly server: string
  readonly ready: boolean
  readonly servers: readonly { readonly name: string; readonly ready: boolean; readonly url: string; readonly leads: readonly string[] }[]
  readonly etcd: readonly { readonly name: string; readonly healthy: boolean }[]
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
  readonly restarts: readonly { readonly what: string; readonly ending: string }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', cluster.name, '-o', 'json'])).stdout) as Status
const isWhole = ({ ready, servers, etcd }: Status) => ready && servers.every((one) => one.ready) && etcd.every((one) => one.healthy)
const leaderOf = ({ servers }: Status, work: string) => servers.find(({ leads }) => leads.includes(work))?.name
const wholeAgain = () => eventually('a whole control plane', 60_000, status, (found) => isWhole(found) && works.every((work) => leaderOf(found, work)))

function kill(found: Status, role: string, node?: string): void {
  process.kill(found.pids.find((one) => one.role === role && one.node === node)?.pid as number, 'SIGKILL')
}

/** A client of one server, past the endpoint. */
async function connectTo(found: Status, name: string): Promise<Connection> {
  const text = fs.readFileSync(path.join(cluster.dir, 'kubeconfig'), 'utf8')
  const kubeconfig = path.join(cluster.dir, `kubeconfig-${name}`)
  fs.writeFileSync(kubeconfig, text.replace(found.server, found.servers.find((server) => server.name === name)?.url as string), { mode: 0o600 })
  return connect({ kubeconfig })
}

before(async () => {
  if (skip) return
  fs.writeFileSync(path.join(audit, 'policy.yaml'), 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n')
  const flags = [`audit-policy-file=${audit}/policy.yaml`, `audit-log-path=${audit}/audit.log`].flatMap((flag) => ['--kube-apiserver-arg', flag])
  cluster = await LocalCluster.start('e2e-ha', ['--control-planes', '3', '--runtime', 'simulated', '--simulated-nodes', '2', ...flags])
  dir = path.join(cluster.dir, 'home/clusters/e2e-ha')
})
after(async () => {
  if (skip) return
  if (fs.existsSync(dir)) await cluster.delete()
  fs.rmSync(audit, { recursive: true })
})

test('HA-01 three servers are ready behind one endpoint, each work has one leader, and the kubernetes Service lists all', options, async () => {
  const found = await status()
  assert.ok(isWhole(found))
  assert.deepEqual(
    found.servers.map(({ name }) => name),
    names,
  )
  assert.deepEqual(found.servers.flatMap(({ leads }) => leads).sort(), [...works].sort())
  assert.ok(fs.readFileSync(path.join(cluster.dir, 'kubeconfig'), 'utf8').includes(found.server))
  assert.ok(!found.servers.some(({ url }) => url === found.server))
  // A server enters the endpoints after it is ready, as upstream's does.
  const addresses = () => cluster.must(['get', 'endpointslices', 'kubernetes', '-o', 'jsonpath={.endpoints[*].addresses[0]}'])
  await eventually('an endpoint for each server', 20_000, addresses, (found) => new Set(found.split(' ')).size === 3)
  const identities = await cluster.must(['get', 'leases', '-n', 'kube-system', '-l', 'apiserver.kubernetes.io/identity=kube-apiserver', '-o', 'name'])
  assert.equal(identities.split('\n').length, 3)
})

test('ARC-01 every check of readiness is ok, and the leases of the scheduler and the controller manager have holders', options, async () => {
  const checks = (await cluster.must(['get', '--raw', '/readyz?verbose'])).trim().split('\n')
  assert.equal(checks.pop(), 'readyz check passed')
  assert.ok(checks.includes('[+]etcd-readiness ok'), checks.join('\n'))
  assert.deepEqual(
    checks.filter((line) => !/^\[\+\]\S+ ok$/.test(line)),
    [],
  )
  const holders = ['get', 'leases', '-n', 'kube-system', 'kube-scheduler', 'kube-controller-manager', '-o', 'jsonpath={.items[*].spec.holderIdentity}']
  assert.equal((await cluster.must(holders)).split(' ').length, 2)
})

test('HA-01 logs and metrics of simulated nodes are served by every server', options, async () => {
  const found = await status()
  for (const name of names) {
    await using direct = await connectTo(found, name)
    const answer = () =>
      direct.client.transport.request({ method: 'GET', path: '/api/v1/nodes/e2e-ha-sim-1/proxy/healthz' }).then(
        () => 'ok',
        (error: Error) => error.message,
      )
    await eventually(`an answer of the kubelet through ${name}`, 5000, answer, (text) => text === 'ok')
  }
})

test('HA-01 a watch at one server shows what another server writes', options, async () => {
  const found = await status()
  await using a = await connectTo(found, 'server-1')
  await using b = await connectTo(found, 'server-2')
  const informers = createSharedInformerFactory(a.client, a)
  const seen = informers.of(configMaps).store
  const stop = new AbortController()
  const running = informers.run(stop.signal)
  await b.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'across' } })
  await eventually('the object at the other server', 5000, async () => seen.get('default/across') !== undefined, Boolean)
  stop.abort()
  await running
})

test('HA-01 each server writes an audit log of its own', options, async () => {
  const logs = fs.readdirSync(audit).filter((file) => file.endsWith('.log'))
  assert.deepEqual(
    logs.sort(),
    names.map((name) => `audit-${name}.log`),
  )
})

test('HA-01 a quota holds when all servers create at once', options, async () => {
  await cluster.must(['create', 'namespace', 'limited'])
  await cluster.must(['create', 'quota', 'few', '-n', 'limited', '--hard=count/configmaps=8'])
  const used = () => cluster.must(['get', 'quota', 'few', '-n', 'limited', '-o', 'jsonpath={.status.used.count/configmaps}'])
  await eventually('the first count', 15_000, used, (text) => text === '1')
  const found = await status()
  const direct = await Promise.all(names.map((name) => connectTo(found, name)))
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      direct[i % 3]?.client
        .of(configMaps)
        .create({ metadata: { namespace: 'limited', name: `c${i}` } })
        .then(
          () => 'created',
          (error: unknown) => (isStatus(error, 'Forbidden') ? 'refused' : String(error)),
        ),
    ),
  )
  for (const connection of direct) await connection.close()
  // kube-root-ca.crt is one of the eight.
  assert.deepEqual([outcomes.filter((one) => one === 'created').length, outcomes.filter((one) => one === 'refused').length], [7, 23], `${outcomes}`)
})

interface Written {
  readonly acknowledged: Set<string>
  /** Requests that failed, by their error. */
  readonly failures: string[]
  /** Longest time between two acknowledged writes. */
  longestMs: number
}

/** Writes through the endpoint, one object after the other, until the signal aborts. */
async function writeAll(prefix: string, { client }: Connection, stop: AbortSignal): Promise<Written> {
  const written: Written = { acknowledged: new Set(), failures: [], longestMs: 0 }
  let lastMs = performance.now()
  for (let i = 0; !stop.aborted; i++) {
    const name = `${prefix}-${i}`
    for (;;) {
      try {
        await client.of(configMaps).create({ metadata: { namespace: 'default', name, labels: { test: 'kill' } } })
        break
      } catch (error) {
        // The request that failed before may have been carried out.
        if (isStatus(error, 'AlreadyExists')) break
        written.failures.push(String(error))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    written.acknowledged.add(name)
    written.longestMs = Math.max(written.longestMs, performance.now() - lastMs)
    lastMs = performance.now()
  }
  return written
}

test('HA-01 a kill of each server in turn loses no acknowledged write, and fails no more requests than were under way', options, async (t) => {
  const connections = await Promise.all(Array.from({ length: 3 }, () => connect({ kubeconfig: path.join(cluster.dir, 'kubeconfig') })))
  const [watching] = connections
  const stop = new AbortController()
  const informers = createSharedInformerFactory(watching?.client as Connection['client'], watching as Connection)
  const seen = informers.of(configMaps).store
  const running = informers.run(stop.signal)
  const writing = new AbortController()
  const writers = connections.map((connection, i) => writeAll(`w${i}`, connection, writing.signal))
  for (const name of names) {
    kill(await wholeAgain(), 'server', name)
    await cluster.must(['get', 'nodes'])
  }
  const found = await wholeAgain()
  writing.abort()
  const written = await Promise.all(writers)
  const acknowledged = written.flatMap((one) => [...one.acknowledged])
  const failures = written.flatMap((one) => one.failures)
  t.diagnostic(
    `${acknowledged.length} writes, ${failures.length} failed requests, longest pause ${Math.round(Math.max(...written.map((one) => one.longestMs)))} ms`,
  )
  assert.ok(acknowledged.length > 100, `${acknowledged.length} writes`)
  const there = new Set((await cluster.must(['get', 'configmaps', '-l', 'test=kill', '-o', 'jsonpath={.items[*].metadata.name}'])).split(' '))
  assert.deepEqual(
    acknowledged.filter((name) => !there.has(name)),
    [],
  )
  await eventually(
    'the watch',
    15_000,
    async () => acknowledged.filter((name) => seen.get(`default/${name}`) === undefined).length,
    (missing) => missing === 0,
  )
  // One request of each writer can be under way at each kill, and may fail a second time while it moves to another server.
  assert.ok(failures.length <= 2 * names.length * connections.length, failures.join('\n'))
  assert.ok(
    written.every(({ longestMs }) => longestMs < 5000),
    JSON.stringify(written.map(({ longestMs }) => longestMs)),
  )
  for (const name of names) assert.ok(found.restarts.some(({ what, ending }) => what === name && ending === 'signal SIGKILL'))
  stop.abort()
  await running
  for (const connection of connections) await connection.close()
})

test('HA-04 another server takes over within the lease time from a leader that does not come back', options, async (t) => {
  const found = await wholeAgain()
  const leader = leaderOf(found, 'scheduler') as string
  // Nothing starts the leader again.
  kill(found, 'supervisor')
  kill(found, 'server', leader)
  const beganMs = performance.now()
  await cluster.must(['create', 'deployment', 'web', '--image=nginx', '--replicas=3'])
  await eventually(
    'pods placed by another server',
    45_000,
    () => cluster.must(['get', 'deployment', 'web', '-o', 'jsonpath={.status.readyReplicas}']),
    (text) => text === '3',
  )
  t.diagnostic(`the pods ran ${Math.round(performance.now() - beganMs)} ms after the kill of the leader`)
  const now = await status()
  for (const work of works) assert.ok(leaderOf(now, work) && leaderOf(now, work) !== leader, `${work}: ${leaderOf(now, work)}`)
  assert.ok(!now.servers.find(({ name }) => name === leader)?.ready)
  const started = await cluster.skiff(['start', cluster.name])
  assert.equal(started.code, 0, started.stderr)
  await wholeAgain()
})

test('HA-04 a leader that is suspended loses its work to another server, and stands by when it continues', options, async () => {
  const found = await wholeAgain()
  const leader = leaderOf(found, 'scheduler') as string
  const pid = found.pids.find(({ node }) => node === leader)?.pid as number
  process.kill(pid, 'SIGSTOP')
  try {
    const other = ({ servers }: Status) => servers.some(({ name, leads }) => name !== leader && leads.includes('scheduler'))
    await eventually('another leader', 60_000, status, other)
    await cluster.must(['create', 'deployment', 'meanwhile', '--image=nginx'])
    await cluster.must(['rollout', 'status', 'deployment', 'meanwhile', '--timeout=60s'], 70_000)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  const now = await wholeAgain()
  assert.notEqual(leaderOf(now, 'scheduler'), leader)
  assert.ok(
    now.pids.some((one) => one.pid === pid),
    'the server has ended',
  )
  const log = async () => (await cluster.skiff(['logs', cluster.name, '--source', leader])).stdout
  await eventually('the loss in its log', 15_000, log, (text) => text.includes('leaderelection lost'))
})

test('ETC-08 ETC-07 writes are accepted without one member of etcd', options, async () => {
  const found = await wholeAgain()
  kill(found, 'etcd', 'etcd-2')
  const write = async () => (await cluster.kubectl(['create', 'configmap', 'without-member'])).stderr
  await eventually('a write', 60_000, write, (stderr) => stderr === '' || /already exists/.test(stderr))
  await wholeAgain()
})

test('HA-01 the balancer that was killed is started again', options, async () => {
  kill(await wholeAgain(), 'balancer')
  const ask = async () => (await cluster.kubectl(['get', 'nodes'])).code
  await eventually('an answer', 15_000, ask, (code) => code === 0)
  assert.ok((await status()).restarts.some(({ what }) => what === 'balancer'))
})

test('HA-01 stop and start keep the objects, another number of servers is refused, and each server has a log', options, async () => {
  const { pids } = await status()
  assert.equal((await cluster.skiff(['stop', cluster.name])).code, 0)
  assert.deepEqual(
    pids.filter(({ pid }) => isThere(pid)),
    [],
  )
  const started = await cluster.skiff(['start', cluster.name])
  assert.equal(started.code, 0, started.stderr)
  await cluster.must(['get', 'configmap', 'w0-0', 'across'])
  const changed = await cluster.skiff(['up', cluster.name, '--control-planes', '5'])
  assert.deepEqual([changed.code, /--control-planes 5 was asked for, it was made with 3/.test(changed.stderr)], [4, true], changed.stderr)
  const logs = await cluster.skiff(['logs', cluster.name, '--source', 'server-2'])
  assert.match(logs.stdout, /New leader elected/)
})

test('HA-01 delete leaves no process and no file', options, async () => {
  const { pids } = await status()
  assert.ok(pids.length >= 8)
  assert.equal((await cluster.skiff(['delete', cluster.name, '-q'])).code, 0)
  assert.deepEqual(
    pids.filter(({ pid }) => isThere(pid)),
    [],
  )
  assert.ok(!fs.existsSync(dir))
  fs.rmSync(cluster.dir, { recursive: true })
})

/** A process that nothing has waited for yet has no command line any more. */
function isThere(pid: number): boolean {
  const file = `/proc/${pid}/cmdline`
  return fs.existsSync(file) && fs.readFileSync(file, 'utf8') !== ''
}
