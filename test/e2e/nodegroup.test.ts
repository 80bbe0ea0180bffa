/** Node groups of a cluster of simulated nodes: the commands, a restart, and the server that an autoscaler asks. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { NodeGroupStatus } from '#cli/clusterManager'
import { connectGrpc } from '#grpc/grpcConnection'
import { externalGrpcProto, externalGrpcService } from '#grpc/proto/externalGrpc'
import { loadService } from '#grpc/protoMessage'
import { eventually, LocalCluster, obstacleToCluster, skiffBin } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
const options = { skip, timeout: 120_000 }
const name = 'e2e-nodegroup'
let cluster: LocalCluster

before(async () => {
  if (!skip) cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--simulated-nodes', '1', '-q'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

async function skiff(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.skiff(args)
  assert.equal(code, 0, stderr)
  return stdout
}

const groups = async () => JSON.parse(await skiff('nodegroup', 'ls', '--name', name, '-o', 'json')) as NodeGroupStatus[]
const nodesOf = async (group: string) => {
  const shown = '{range .items[*]}{.metadata.name} {.metadata.labels.zone} {.status.capacity.cpu} {.spec.providerID};{end}'
  return cluster.must(['get', 'nodes', '-l', `skiff.dev/node-group=${group}`, '-o', `jsonpath=${shown}`])
}
const first = `small-1 z-a 4 skiff://${name}/small-1;`
const second = `small-2 z-b 4 skiff://${name}/small-2;`

test('AUT-05 a group is created from a template, listed, scaled and kept over a restart', options, async () => {
  const file = path.join(cluster.dir, 'node.yaml')
  fs.writeFileSync(file, 'kind: Node\nmetadata: {labels: {zone: "z-{a,b}"}}\nstatus: {capacity: {cpu: 4}}\n')
  await skiff('nodegroup', 'create', 'small', '--name', name, '--min', '1', '--max', '3', '--size', '2', '--like', file, '-q')
  assert.equal(await nodesOf('small'), first + second)
  assert.equal(await skiff('nodegroup', 'ls', '--name', name), 'NODEGROUP   MIN   MAX   SIZE   READY\nsmall       1     3     2      2\n')
  await skiff('nodegroup', 'scale', 'small', '3', '--name', name, '-q')
  await skiff('nodegroup', 'scale', 'small', '2', '--name', name, '-q')
  const over = await cluster.skiff(['nodegroup', 'scale', 'small', '4', '--name', name])
  assert.deepEqual([over.code, over.stderr], [2, 'error: 4: the size of node group "small" is from 1 to 3\n'])
  await skiff('stop', name)
  await skiff('start', name, '-q')
  assert.equal(await nodesOf('small'), first + second)
  assert.deepEqual(await groups(), [{ name: 'small', min: 1, max: 3, size: 2, ready: 2, nodes: ['small-1', 'small-2'] }])
})

/** A server on a free port, until `use` has ended. */
async function withServer(use: (call: (method: string, request: object) => Promise<object>) => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [skiffBin, 'nodegroup', 'serve', '--name', name, '--listen', '127.0.0.1:0'], {
    env: cluster.env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const address = /Serving node groups.*(127\.0\.0\.1:\d+)/
  await eventually(
    'the server of node groups',
    20_000,
    async () => log,
    (text) => address.test(text),
  )
  const connection = connectGrpc(address.exec(log)?.[1] ?? '')
  const methods = loadService(externalGrpcProto, externalGrpcService)
  try {
    await use(async (method, request) => {
      const found = methods.get(method)
      assert.ok(found)
      return found.response.decode(await connection.unary(found.path, found.request.encode(request), { timeoutMs: 10_000 }))
    })
  } finally {
    connection.close()
    const ended = once(child, 'exit')
    child.kill()
    assert.deepEqual(await ended, [0, null], log)
  }
}

test('AUT-05 an autoscaler adds nodes, which become ready, and removes the nodes that it names', options, () =>
  withServer(async (call) => {
    await call('NodeGroupIncreaseSize', { id: 'small', delta: 1 })
    await eventually('three ready nodes', 30_000, groups, ([group]) => group?.ready === 3)
    await call('NodeGroupDeleteNodes', { id: 'small', nodes: [{ name: 'small-1', providerID: `skiff://${name}/small-1` }] })
    const [group] = await groups()
    assert.deepEqual(group?.nodes, ['small-2', 'small-4'])
    await eventually(
      'the Node is deleted',
      20_000,
      () => nodesOf('small'),
      (text) => !text.includes('small-1 '),
    )
    await assert.rejects(
      call('NodeGroupDeleteNodes', { id: 'small', nodes: [{ name: 'small-1', providerID: `skiff://${name}/small-1` }] }),
      /small-1 belongs to/,
    )
  }),
)

test('AUT-05 a change is refused while the cluster does not run, and a group is deleted with its nodes', options, async () => {
  await skiff('stop', name)
  await withServer(async (call) => assert.rejects(call('NodeGroupIncreaseSize', { id: 'small', delta: 1 }), /cluster "e2e-nodegroup" does not run/))
  await skiff('start', name, '-q')
  await skiff('nodegroup', 'delete', 'small', '--name', name, '-q')
  assert.equal(await nodesOf('small'), '')
  assert.deepEqual(await groups(), [])
})
