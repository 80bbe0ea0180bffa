/** A hundred simulated nodes in one process, without root or containerd: pods spread over them, run, move and go. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { LoadReport } from '#cli/load/loadReport'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { webManifests } from './support/webImage.ts'

const skip = obstacleToCluster(false)
const options = { skip }
let cluster: LocalCluster

before(async () => {
  if (!skip) cluster = await LocalCluster.start('e2e-sim', ['--runtime', 'simulated', '--simulated-nodes', '100'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const ready = () => cluster.must(['get', 'deployment', 'web-app', '-o', 'jsonpath={.status.readyReplicas}/{.status.updatedReplicas}/{.status.replicas}'])

test('KUB-26 a hundred simulated nodes are Ready', options, async () => {
  const nodes = await cluster.must(['get', 'nodes', '--no-headers'])
  assert.equal(nodes.split('\n').filter((line) => / Ready /.test(line)).length, 100)
})

test('the server inherits neither the size of the supervisor’s thread pool nor the variable that carried the user’s', options, async () => {
  const { pids } = JSON.parse((await cluster.skiff(['status', 'e2e-sim', '-o', 'json'])).stdout) as { pids: { role: string; pid: number }[] }
  const environment = (role: string) => fs.readFileSync(`/proc/${pids.find((one) => one.role === role)?.pid}/environ`, 'utf8').split('\0')
  const sizes = (role: string) => environment(role).filter((entry) => entry.includes('UV_THREADPOOL_SIZE='))
  assert.deepEqual(sizes('supervisor'), ['UV_THREADPOOL_SIZE=1', 'SKIFF_USERS_UV_THREADPOOL_SIZE='])
  assert.deepEqual(sizes('server'), [])
})

test('KUB-26 the web application runs on them, spread out', options, async () => {
  await cluster.mustWith(webManifests('web-app:1.0'), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
  await cluster.must(['scale', 'deployment/web-app', '--replicas=200'])
  await eventually('two hundred ready pods', 60_000, ready, (text) => text === '200/200/200')
  const nodes = await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].spec.nodeName}'])
  assert.ok(new Set(nodes.split(' ')).size > 50, 'pods crowd on few nodes')
})

test('CTL-12 the Service has an endpoint for each pod', options, async () => {
  const count = async () =>
    (
      await cluster.must(['get', 'endpointslices', '-l', 'kubernetes.io/service-name=web-service', '-o', 'jsonpath={.items[*].endpoints[*].addresses[0]}'])
    ).split(' ').length
  assert.equal(await eventually('two hundred endpoints', 30_000, count, (n) => n === 200), 200)
})

test('CTL-04 set image, rollout and undo', options, async () => {
  await cluster.must(['scale', 'deployment/web-app', '--replicas=10'])
  await eventually('ten pods', 60_000, ready, (text) => text === '10/10/10')
  await cluster.must(['set', 'image', 'deployment/web-app', 'app=web-app:2.0'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
  await cluster.must(['rollout', 'undo', 'deployment/web-app'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
})

test('ARC-13 simulate load fills the cluster, changes it, lets nodes fail, reports percentiles, and leaves nothing', options, async () => {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-load-')), 'load.yaml')
  fs.writeFileSync(
    file,
    'namespaces: 2\ndeployments: [{ count: 5, replicas: 10 }]\nchurn: { for: 4s, scale: 1/s, deletePod: 5/s, nodeFlap: 1/s, nodeDown: 2s }\n',
  )
  const { code, stdout, stderr } = await cluster.skiff(['simulate', 'load', file, '--name', 'e2e-sim', '-o', 'json'])
  fs.rmSync(path.dirname(file), { recursive: true })
  assert.equal(code, 0, stderr)
  const report = JSON.parse(stdout) as LoadReport
  assert.deepEqual([report.fill.pods, report.fill.ready, report.failures], [50, 50, []])
  assert.ok((report.churn?.operations.nodeFlap ?? 0) >= 3, stdout)
  const reasons = await cluster.must(['get', 'events', '-A', '--field-selector', 'involvedObject.kind=Node,reason=NodeNotReady', '-o', 'name'])
  assert.notEqual(reasons, '', 'nodes were reported as not ready')
  await eventually(
    'all nodes are ready again',
    30_000,
    () => cluster.must(['get', 'nodes', '--no-headers']),
    (text) => !text.includes('NotReady'),
  )
  assert.equal(await cluster.must(['get', 'namespaces', '-l', 'skiff.dev/load', '-o', 'name']), '')
})

test('KUB-25 a simulated pod answers logs and exec', options, async () => {
  const pod = (await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'name'])).split('\n')[0] ?? ''
  const logs = await cluster.kubectl(['logs', pod])
  assert.equal(logs.code, 0, logs.stderr)
  const exec = await cluster.kubectl(['exec', pod, '--', 'true'])
  assert.equal(exec.code, 126, exec.stderr)
  assert.match(exec.stderr, /true: not run, container .* is simulated/)
})

test('ARC-13 API-29 a request through the proxy of a node is answered by the kubelet of that node, though all share a port', options, async () => {
  const [first, second] = (await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].spec.nodeName}'])).split(' ')
  for (const node of [first, second]) {
    const { items } = JSON.parse(await cluster.must(['get', '--raw', `/api/v1/nodes/${node}/proxy/pods`])) as { items: { spec: { nodeName: string } }[] }
    assert.ok(items.length > 0)
    assert.deepEqual(
      items.filter(({ spec }) => spec.nodeName !== node),
      [],
    )
  }
})

test('ARC-13 simulated nodes are added to a running cluster from a template, and removed', options, async () => {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-like-')), 'node.yaml')
  fs.writeFileSync(file, 'kind: Node\nmetadata: {name: "late-{n}", labels: {zone: "z-{a,b}"}}\nstatus: {capacity: {cpu: 4}}\n')
  const added = await cluster.skiff(['nodes', 'add', 'e2e-sim', '--simulated', '4', '--like', file, '-q'])
  assert.equal(added.code, 0, added.stderr)
  const late = await cluster.must([
    'get',
    'nodes',
    '-l',
    'zone',
    '-o',
    'jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.zone} {.status.capacity.cpu};{end}',
  ])
  assert.equal(late, 'late-101 z-a 4;late-102 z-b 4;late-103 z-a 4;late-104 z-b 4;')
  const removed = await cluster.skiff(['nodes', 'remove', 'e2e-sim', '--simulated', '4', '-q'])
  assert.equal(removed.code, 0, removed.stderr)
  assert.equal(await cluster.must(['get', 'nodes', '-l', 'zone', '-o', 'name']), '')
  fs.rmSync(path.dirname(file), { recursive: true })
})

test('STO-06 a claim of the default class is bound to a volume on the node of its pod', options, async () => {
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  const containers = [{ name: 'main', image: 'web-app:1.0', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'data' }, spec: { containers, volumes } }
  assert.match(await cluster.must(['get', 'sc', '--no-headers']), /^standard \(default\) [^\n]*$/)
  for (const object of [claim, pod]) await cluster.mustWith(JSON.stringify(object), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/data', '--timeout=30s'])
  const node = await cluster.must(['get', 'pod', 'data', '-o', 'jsonpath={.spec.nodeName}'])
  assert.equal(await cluster.must(['get', 'pv', '-o', 'jsonpath={.items[*].metadata.annotations.skiff\\.dev/local-path-node}']), node)
  await cluster.must(['delete', 'pod/data', 'pvc/data'])
  await eventually(
    'the volume to be gone',
    20_000,
    () => cluster.must(['get', 'pv', '-o', 'name']),
    (text) => text === '',
  )
})

test('SCH-03 a pod too large for every node stays Pending, with the reason in its condition', options, async () => {
  await cluster.mustWith(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'big' },
      spec: { containers: [{ name: 'c', image: 'x:1', resources: { requests: { cpu: '1000' } } }] },
    }),
    ['apply', '-f', '-'],
  )
  const events = () =>
    cluster.must(['get', 'events', '--field-selector', 'involvedObject.name=big,reason=FailedScheduling', '-o', 'jsonpath={.items[0].message}'])
  assert.match(await eventually('the event', 10_000, events, (text) => text !== ''), /^0\/100 nodes are available: 100 Insufficient cpu\./)
})

test('CTL-10 a namespace with everything in it goes', options, async () => {
  await cluster.must(['create', 'namespace', 'going'])
  await cluster.mustWith(webManifests('web-app:1.0'), ['apply', '-n', 'going', '-f', '-'])
  await cluster.must(['delete', 'namespace', 'going', '--timeout=60s'], 90_000)
  assert.match((await cluster.kubectl(['get', 'namespace', 'going'])).stderr, /namespaces "going" not found/)
})

test('CTL-22 status as JSON names the server process', options, async () => {
  const status = JSON.parse((await cluster.skiff(['status', 'e2e-sim', '-o', 'json'])).stdout) as {
    name: string
    ready: boolean
    simulatedNodes: { count: number; ready: number }
    pids: { role: string; pid: number }[]
  }
  assert.equal(status.name, 'e2e-sim')
  assert.equal(status.ready, true)
  assert.deepEqual(status.simulatedNodes, { count: 100, ready: 100 })
  const server = status.pids.find((one) => one.role === 'server')
  assert.ok(server && process.kill(server.pid, 0))
})

test('SDR-05 a server that is killed loses nothing: same port, same objects, running again in a moment', options, async () => {
  const statusOf = async () =>
    JSON.parse((await cluster.skiff(['status', 'e2e-sim', '-o', 'json'])).stdout) as { server: string; running: boolean; pids: { role: string; pid: number }[] }
  const before_ = await statusOf()
  await cluster.must(['create', 'configmap', 'kept', '--from-literal=a=1'])
  const uid = await cluster.must(['get', 'configmap', 'kept', '-o', 'jsonpath={.metadata.uid}'])
  const killed = before_.pids.find((one) => one.role === 'server')?.pid ?? 0
  process.kill(killed, 'SIGKILL')
  // The supervisor may have started another one before the first look.
  await eventually('the end of the server', 5000, statusOf, ({ pids }) => !pids.some(({ pid }) => pid === killed))
  const started = await cluster.skiff(['start', 'e2e-sim'])
  assert.equal(started.code, 0, started.stderr)
  assert.equal((await statusOf()).server, before_.server)
  assert.equal(await cluster.must(['get', 'configmap', 'kept', '-o', 'jsonpath={.metadata.uid}']), uid)
  await eventually('ten ready pods', 60_000, ready, (text) => text === '10/10/10')
})
