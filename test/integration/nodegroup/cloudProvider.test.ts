/** Each method of the cloud provider externalgrpc over a gRPC connection, on node groups whose simulated nodes run. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { canonicalQuantity } from '#api/machinery/quantity'
import { decodeMessage } from '#api/protobuf/decode'
import { schemaFor } from '#api/schema/builtIn'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { nodes } from '#client/builtIn'
import { connectGrpc, type GrpcConnection } from '#grpc/grpcConnection'
import { GrpcError } from '#grpc/grpcError'
import { type GrpcServer, serveGrpc } from '#grpc/grpcServer'
import { externalGrpcProto, externalGrpcService } from '#grpc/proto/externalGrpc'
import { loadService } from '#grpc/protoMessage'
import { createOwnKubelets } from '#main/layouts/ownKubelets'
import { createSimulatedNodes } from '#main/layouts/simulatedNodes'
import type { ApiProbe } from '#main/localCluster/apiProbe'
import { type ClusterState, clusterPaths, readState, writeState } from '#main/localCluster/clusterState'
import { rememberProcess } from '#main/localCluster/processes'
import { type NodeGroup, simulatedNodesOf } from '#main/localCluster/simulatedPlan'
import { cloudProviderService } from '#main/nodegroup/cloudProvider'
import { type ClusterGroups, registeredNodes } from '#main/nodegroup/clusterGroups'
import { createPrometheusMetrics } from '#main/prometheus'
import { startCluster, type TestCluster } from '#testing/cluster'
import { testCertificates } from '#testing/testCertificates'

const like = {
  labels: { zone: 'z-{a,b}' },
  taints: [{ key: 'dedicated', value: 'batch', effect: 'NoSchedule' }],
  capacity: { cpu: 4, memoryBytes: 8 * 2 ** 30, pods: 20 },
}
const groupNamed = (name: string, min: number, max: number): NodeGroup => ({ name, min, max, like, numbers: [] })
const patience = 20_000

let home: string
let paths: ReturnType<typeof clusterPaths>
let cluster: TestCluster
let running: Promise<void>
let server: GrpcServer
let connection: GrpcConnection
const stop = new AbortController()
/** Nodes that the API refuses. */
const refusedNodes = new Set<string>()
const methods = loadService(externalGrpcProto, externalGrpcService)

/** Tells the simulated nodes that the plan may have changed, as a server of a local cluster does on SIGHUP. */
let look = () => {}
const onHangUp = () => look()

const stateNow = async () => (await readState(paths)) as ClusterState

const probe = {
  get: async (url: string) => {
    if (url === '/readyz') return { status: 200, body: 'ok' }
    const selector = new URL(url, 'http://localhost').searchParams.get('labelSelector')
    const list = await cluster.client.of(nodes).list(selector === null ? {} : { labelSelector: selector })
    return { status: 200, body: JSON.stringify({ metadata: {}, items: list.items }) }
  },
  until: async <T>(_what: string, deadlineMs: number, done: () => Promise<T | undefined>) => cluster.until(done, deadlineMs + patience),
} as unknown as ApiProbe

let last: Promise<unknown> = Promise.resolve()
const groups: ClusterGroups = {
  state: stateNow,
  registered: async (group) => registeredNodes(probe, await stateNow(), group),
  change: (act) => {
    const next = last.then(async () => act({ paths, state: await stateNow(), progress: { step: (_title, work) => work(() => {}), note: () => {} } }, probe))
    last = next.catch(() => {})
    return next
  },
}

before(async () => {
  home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cloud-provider-'))
  paths = clusterPaths(home, 'lab')
  const own = { name: 'lab', id: '0000', port: 0, nodes: [], simulatedNodes: ['lab-sim-1'], verbosity: 0 }
  await writeState(paths, { ...own, nodeGroups: [groupNamed('small', 1, 4), groupNamed('large', 0, 10)] })
  cluster = await startCluster({ clock: 'real', nodes: 0 })
  const { cert, key } = await testCertificates('CN=kubelets')
  process.on('SIGHUP', onHangUp)
  await rememberProcess(paths.server('server').pid, process.pid, cluster.clock)
  running = createSimulatedNodes({
    planned: async () => simulatedNodesOf(await stateNow()),
    removed: async () => (await stateNow()).removedNodes ?? [],
    tools: { clock: cluster.clock, random: seededRandom(1), log: noLog, metrics: createPrometheusMetrics() },
    ownKubelets: createOwnKubelets(),
    clientOf,
    manager: cluster.client,
    clusterDns: '10.96.0.10',
    clusterDomain: 'cluster.local',
    tainted: false,
    serving: { cert, key, clientCa: cert },
    onLook: (apply) => {
      look = apply
    },
  }).run(stop.signal)
  server = await serveGrpc('127.0.0.1', 0, {
    services: [cloudProviderService({ groups, clock: cluster.clock, log: noLog })],
    maxRequestBytes: 2 ** 20,
    maxConcurrentStreams: 10,
    documents: () => ({ status: 404, contentType: 'text/plain', body: '' }),
  })
  connection = connectGrpc(`127.0.0.1:${server.port}`)
})

after(async () => {
  process.off('SIGHUP', onHangUp)
  connection.close()
  await server.close()
  stop.abort()
  await running
  await cluster.close()
  await fs.rm(home, { recursive: true })
})

function clientOf(name: string) {
  const client = cluster.clientAs({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] })
  const of = (resource: never) => {
    const typed = client.of(resource) as unknown as { create(...given: unknown[]): Promise<unknown> }
    const create = (...given: unknown[]) => (refusedNodes.has(name) ? Promise.reject(new Error('a fault on purpose')) : typed.create(...given))
    return Object.assign(Object.create(typed), { create })
  }
  return Object.assign(Object.create(client), { of })
}

async function call<Answer = object>(name: string, request: object = {}): Promise<Answer> {
  const method = methods.get(name)
  assert.ok(method, name)
  return method.response.decode(await connection.unary(method.path, method.request.encode(request), { timeoutMs: patience })) as Answer
}

const refuses = (promise: Promise<unknown>, message: string | RegExp) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof GrpcError && error.code === 'UNKNOWN', String(error))
    if (typeof message === 'string') assert.equal(error.description, message)
    else assert.match(error.description, message)
    return true
  })

const sizeOf = async (id: string) => (await call<{ targetSize: number }>('NodeGroupTargetSize', { id })).targetSize
type Instances = { instances: { id: string; status: { instanceState: string } }[] }
const instancesOf = async (id: string) => (await call<Instances>('NodeGroupNodes', { id })).instances.map((one) => `${one.id} ${one.status.instanceState}`)
const nodeOf = (name: string) => ({ providerID: `skiff://lab/${name}`, name, labels: {}, annotations: {} })
const untilInstances = (id: string, want: string) => cluster.until(async () => (await instancesOf(id)).join() === want, patience)

test('AUT-05 NodeGroups lists the groups with their limits, and calls about others are refused in upstream’s words', async () => {
  assert.deepEqual(await call('NodeGroups'), {
    nodeGroups: [
      { id: 'small', minSize: 1, maxSize: 4, debug: 'small (1:4)' },
      { id: 'large', minSize: 0, maxSize: 10, debug: 'large (0:10)' },
    ],
  })
  for (const name of ['TargetSize', 'IncreaseSize', 'DeleteNodes', 'DecreaseTargetSize', 'Nodes', 'TemplateNodeInfo', 'GetOptions'])
    await refuses(call(`NodeGroup${name}`, { id: 'none' }), 'NodeGroup "none", not found')
})

test('AUT-05 NodeGroupIncreaseSize adds nodes that register with the label and providerID of the group', async () => {
  await call('NodeGroupIncreaseSize', { id: 'small', delta: 2 })
  assert.equal(await sizeOf('small'), 2)
  await untilInstances('small', 'skiff://lab/small-1 instanceRunning,skiff://lab/small-2 instanceRunning')
  const { items } = await cluster.client.of(nodes).list({ labelSelector: 'skiff.dev/node-group=small' })
  assert.deepEqual(
    items.map(({ metadata, spec }) => [metadata.name, metadata.labels?.zone, spec.providerID]),
    [
      ['small-1', 'z-a', 'skiff://lab/small-1'],
      ['small-2', 'z-b', 'skiff://lab/small-2'],
    ],
  )
})

test('AUT-05 a size over the maximum, and an increase that is not positive, are refused', async () => {
  await refuses(call('NodeGroupIncreaseSize', { id: 'small', delta: 3 }), 'size increase too large, desired: 5 max: 4')
  for (const delta of [0, -1]) await refuses(call('NodeGroupIncreaseSize', { id: 'small', delta }), 'size increase must be positive')
  assert.equal(await sizeOf('small'), 2)
})

test('AUT-05 NodeGroupForNode finds the group of a node by its providerID, and else by its name', async () => {
  const groupOf = async (node: object) => (await call<{ nodeGroup: { id: string } }>('NodeGroupForNode', { node })).nodeGroup.id
  assert.equal(await groupOf(nodeOf('small-1')), 'small')
  assert.equal(await groupOf({ name: 'small-2' }), 'small')
  // The autoscaler describes an instance without a Node so.
  assert.equal(await groupOf({ name: 'skiff://lab/small-2', providerID: 'skiff://lab/small-2' }), 'small')
  assert.equal(await groupOf({ name: 'small-1', providerID: 'aws:///small-1' }), '')
  assert.equal(await groupOf(nodeOf('lab-sim-1')), '')
  await refuses(call('NodeGroupForNode'), 'request fields were nil')
})

test('AUT-05 NodeGroupTemplateNodeInfo has the labels, taints and resources that a node of the group registers with', async () => {
  const schema = schemaFor('', 'v1', 'Node')
  assert.ok(schema)
  const { nodeBytes } = await call<{ nodeBytes: Buffer }>('NodeGroupTemplateNodeInfo', { id: 'small' })
  const template = decodeMessage(nodeBytes, schema) as {
    metadata: { name: string; labels: Record<string, string> }
    spec: object
    status: Record<string, object>
  }
  const real = await cluster.until(async () => {
    const node = await cluster.client.of(nodes).get({ name: 'small-1' })
    return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ? node : undefined
  }, patience)
  assert.equal(template.metadata.name, 'small-3')
  assert.deepEqual({ ...template.metadata.labels, 'kubernetes.io/hostname': 'small-1' }, { ...real.metadata.labels })
  assert.deepEqual(template.spec, { providerID: 'skiff://lab/small-3', taints: like.taints })
  const canonical = (resources: object = {}) => Object.fromEntries(Object.entries(resources).map(([name, amount]) => [name, canonicalQuantity(String(amount))]))
  for (const field of ['capacity', 'allocatable'] as const) assert.deepEqual(canonical(template.status[field]), canonical(real.status?.[field]))
  const ready = (template.status.conditions as { type: string; status: string }[]).find(({ type }) => type === 'Ready')
  assert.equal(ready?.status, 'True')
})

test('AUT-05 NodeGroupDecreaseTargetSize takes back nodes that have not registered, and no others', async () => {
  await refuses(call('NodeGroupDecreaseTargetSize', { id: 'small', delta: 1 }), 'size decrease must be negative')
  const exists = 'attempt to delete existing nodes, targetSize: 2 delta: -1 existingNodes: 2'
  await refuses(call('NodeGroupDecreaseTargetSize', { id: 'small', delta: -1 }), exists)
  refusedNodes.add('small-3')
  await call('NodeGroupIncreaseSize', { id: 'small', delta: 1 })
  assert.equal((await instancesOf('small'))[2], 'skiff://lab/small-3 instanceCreating')
  await call('NodeGroupDecreaseTargetSize', { id: 'small', delta: -1 })
  assert.deepEqual(await instancesOf('small'), ['skiff://lab/small-1 instanceRunning', 'skiff://lab/small-2 instanceRunning'])
})

test('AUT-05 NodeGroupDeleteNodes removes the named nodes, and none when one is another group’s or the size would be below the minimum', async () => {
  await call('NodeGroupIncreaseSize', { id: 'large', delta: 1 })
  await untilInstances('large', 'skiff://lab/large-4 instanceRunning')
  const both = { id: 'small', nodes: [nodeOf('small-1'), nodeOf('small-2')] }
  await refuses(call('NodeGroupDeleteNodes', both), "can't delete nodes because nodegroup size would go below min size")
  await refuses(call('NodeGroupDeleteNodes', { id: 'small', nodes: [nodeOf('large-4')] }), 'large-4 belongs to a different group than small')
  await call('NodeGroupDeleteNodes', { id: 'small', nodes: [nodeOf('small-1'), nodeOf('small-1')] })
  assert.deepEqual(await instancesOf('small'), ['skiff://lab/small-2 instanceRunning'])
  await cluster.until(async () => (await cluster.client.of(nodes).list()).items.every(({ metadata }) => metadata.name !== 'small-1'), patience)
  assert.deepEqual((await stateNow()).removedNodes, [])
  await refuses(call('NodeGroupDeleteNodes', { id: 'small', nodes: [nodeOf('small-2')] }), 'min size reached, nodes will not be deleted')
})

test('AUT-05 changes of several clients at the same time are made one after the other', async () => {
  const before = await sizeOf('large')
  await Promise.all([1, 2, 3].map(() => call('NodeGroupIncreaseSize', { id: 'large', delta: 1 })))
  assert.equal(await sizeOf('large'), before + 3)
})

test('AUT-05 NodeGroupGetOptions gives the autoscaler’s own defaults back, with fields that are not known here', async () => {
  const defaults = Buffer.from([0x09, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0xf8, 0x07, 0x01])
  assert.deepEqual(await call('NodeGroupGetOptions', { id: 'small', defaults }), { nodeGroupAutoscalingOptions: defaults })
  await refuses(call('NodeGroupGetOptions', { id: 'small' }), 'request fields were nil')
})

test('AUT-05 there are no GPUs, Refresh and Cleanup do nothing, and prices are not implemented', async () => {
  assert.deepEqual(await call('GPULabel'), { label: '' })
  assert.deepEqual(await call('GetAvailableGPUTypes'), { gpuTypes: {} })
  assert.deepEqual([await call('Refresh'), await call('Cleanup')], [{}, {}])
  for (const name of ['PricingNodePrice', 'PricingPodPrice']) {
    const asked = connection.unary(`/${externalGrpcService}/${name}`, Buffer.alloc(0), { timeoutMs: patience })
    await assert.rejects(asked, (error) => error instanceof GrpcError && error.code === 'UNIMPLEMENTED')
  }
})
