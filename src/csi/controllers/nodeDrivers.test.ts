/** To which node's driver a call goes, and what is said while a node does not answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GrpcError } from '#grpc/grpcError'
import { realClock } from '#testing/realClock'
import { simulatedHostPathDriver } from '../hostpath/driver.ts'
import { memoryState } from '../hostpath/state.ts'
import type { CsiConnection } from './driver.ts'
import { connectInProcess } from './inProcess.ts'
import { joinNodeDrivers, type NodeDriver } from './nodeDrivers.ts'

const topologyKey = 'topology.hostpath.csi.skiff.dev/node'
const never = new AbortController().signal
const capacityBytes = 1000
const volumeCapabilities = [{ mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }] as const

interface Node extends NodeDriver {
  isDown: boolean
  readonly calls: string[]
}

function node(nodeId: string): Node {
  const file = memoryState()
  const real = connectInProcess(simulatedHostPathDriver({ nodeId, file, capacityBytes, now: () => 0 }), realClock)
  const calls: string[] = []
  const down = () => Promise.reject(new GrpcError('UNAVAILABLE', 'the node does not run').inGoWords())
  const one: Node = {
    ...{ nodeId, calls, isDown: false },
    connection: {
      ...real,
      identity: (...args) => (one.isDown ? down() : real.identity(...args)),
      call: (method, ...rest) => {
        calls.push(method)
        return one.isDown ? down() : real.call(method, ...rest)
      },
    },
  }
  return one
}

function join(...nodes: readonly Node[]) {
  const joined = joinNodeDrivers(nodes, { topologyKey, name: 'hostpath.csi.skiff.dev', monotonicMs: () => 0 })
  const call = <Method extends Parameters<CsiConnection['call']>[0]>(method: Method, request: object) => joined.call(method, request as never, 1000, never)
  const terms = (ids: readonly string[]) => ids.map((id) => ({ segments: { [topologyKey]: id } }))
  const create = async (name: string, preferred: readonly string[], more: object = {}) => {
    const accessibilityRequirements = { requisite: terms(['a', 'b']), preferred: terms(preferred) }
    const capacityRange = { requiredBytes: 600, limitBytes: 0 }
    const { volume } = await call('createVolume', { name, capacityRange, volumeCapabilities, accessibilityRequirements, ...more })
    return volume
  }
  const nodeOf = ({ accessibleTopology = [] }: Awaited<ReturnType<typeof create>>) => accessibleTopology[0]?.segments[topologyKey]
  return { joined, call, create, nodeOf }
}

const hasCode = (code: string) => (error: GrpcError) => error.code === code

test('STO-10 a volume is made on the node that is preferred, and on the next one when that is full', async () => {
  const { call, create, nodeOf } = join(node('a'), node('b'))
  assert.equal(nodeOf(await create('first', ['b', 'a'])), 'b')
  assert.equal(nodeOf(await create('second', ['b', 'a'])), 'a')
  await assert.rejects(create('third', ['b', 'a']), hasCode('RESOURCE_EXHAUSTED'))
  const at = (id: string) => call('getCapacity', { accessibleTopology: { segments: { [topologyKey]: id } } })
  assert.deepEqual(await Promise.all(['a', 'gone'].map(async (id) => (await at(id)).availableCapacity)), [400, 0])
})

test('STO-10 a node that does not answer may have made the volume: no other node is asked for it', async () => {
  const [a, b] = [node('a'), node('b')]
  const { create } = join(a, b)
  b.isDown = true
  await assert.rejects(create('first', ['b', 'a']), hasCode('UNAVAILABLE'))
  assert.deepEqual(a.calls, [])
})

test('STO-10 a node whose answer was lost is asked for the volume again, though a node before it has room by now', async () => {
  const [a, b] = [node('a'), node('b')]
  const { create, call, nodeOf } = join(a, b)
  const filling = await create('filling', ['a', 'b'])
  const { call: ask } = b.connection
  const lost: CsiConnection['call'] = async (...given) => {
    await ask(...given)
    throw new GrpcError('DEADLINE_EXCEEDED', 'it takes long').inGoWords()
  }
  Object.assign(b.connection, { call: lost })
  await assert.rejects(create('first', ['a', 'b']), hasCode('DEADLINE_EXCEEDED'))
  Object.assign(b.connection, { call: ask })
  await call('deleteVolume', { volumeId: filling.volumeId, secrets: {} })
  assert.equal(nodeOf(await create('first', ['a', 'b'])), 'b')
})

test('STO-08 a program of a node that says it is another driver, or lists without end, is not believed', async () => {
  const [a, b] = [node('a'), node('b')]
  const { joined, call } = join(a, b)
  const { call: real } = a.connection
  Object.assign(a.connection, {
    identity: async () => ({ name: 'other.example.com' }),
    call: async (...given: Parameters<CsiConnection['call']>) => (given[0] === 'listVolumes' ? { entries: [], nextToken: 'more' } : real(...given)),
  })
  assert.equal((await joined.identity<{ name: string }>('GetPluginInfo', 1000, never)).name, 'hostpath.csi.skiff.dev')
  await assert.rejects(call('listVolumes', { maxEntries: 0, startingToken: '' }), /has more than 10000 pages/)
  b.isDown = true
  await assert.rejects(joined.identity('GetPluginInfo', 1000, never), /node a runs the driver other.example.com/)
})

test('STO-12 a copy is made where its source is, whatever the pod prefers', async () => {
  const { call, create, nodeOf } = join(node('a'), node('b'))
  const capacityRange = { requiredBytes: 300, limitBytes: 0 }
  const { volumeId } = await create('origin', ['a'], { capacityRange })
  const { snapshot } = await call('createSnapshot', { name: 'snap', sourceVolumeId: volumeId })
  const restored = await create('restored', ['b'], { capacityRange, volumeContentSource: { snapshot: { snapshotId: snapshot.snapshotId } } })
  assert.equal(nodeOf(restored), 'a')
  assert.equal(nodeOf(await create('clone', ['b'], { capacityRange, volumeContentSource: { volume: { volumeId } } })), 'a')
  await assert.rejects(create('none', ['b'], { volumeContentSource: { volume: { volumeId: 'none' } } }), hasCode('NOT_FOUND'))
})

test('STO-09 a volume is deleted while another node is down; an unknown volume is NOT_FOUND only after all nodes answered', async () => {
  const [a, b] = [node('a'), node('b')]
  const made = await join(a, b).create('first', ['a'])
  const { call } = join(a, b)
  b.isDown = true
  await assert.rejects(call('deleteVolume', { volumeId: 'vol-elsewhere' }), hasCode('UNAVAILABLE'))
  await call('deleteVolume', { volumeId: made.volumeId })
  assert.ok(!b.calls.includes('deleteVolume'))
  b.isDown = false
  assert.deepEqual((await call('listVolumes', {})).entries, [])
  await call('deleteVolume', { volumeId: made.volumeId })
  await assert.rejects(call('controllerExpandVolume', { volumeId: made.volumeId, capacityRange: { requiredBytes: 1, limitBytes: 0 } }), hasCode('NOT_FOUND'))
})

test('STO-10 a volume is attached by the driver of the node that is named, and taking it back from a node that is gone succeeds', async () => {
  const [a, b] = [node('a'), node('b')]
  const { call, create } = join(a, b)
  const { volumeId } = await create('first', ['a'])
  const publish = (nodeId: string) => call('controllerPublishVolume', { volumeId, nodeId, volumeCapability: volumeCapabilities[0], readonly: false })
  await publish('a')
  await assert.rejects(publish('b'), hasCode('NOT_FOUND'))
  await assert.rejects(publish('gone'), hasCode('NOT_FOUND'))
  const { entries } = await call('listVolumes', {})
  assert.deepEqual(
    entries.map(({ status }) => status?.publishedNodeIds),
    [['a']],
  )
  await call('controllerUnpublishVolume', { volumeId, nodeId: 'gone' })
  await call('controllerUnpublishVolume', { volumeId, nodeId: '' })
  await call('deleteVolume', { volumeId })
})

test('STO-08 the driver is known once one node answers, and without a node the error says so', async () => {
  const [a, b] = [node('a'), node('b')]
  const { joined } = join(a, b)
  a.isDown = true
  assert.equal((await joined.identity<{ name: string }>('GetPluginInfo', 1000, never)).name, 'hostpath.csi.skiff.dev')
  b.isDown = true
  await assert.rejects(joined.identity('GetPluginInfo', 1000, never), hasCode('UNAVAILABLE'))
  await assert.rejects(join().joined.identity('GetPluginInfo', 1000, never), /no node with the driver/)
})

test('STO-13 a group snapshot is taken on the node that has its volumes, refused for volumes of two nodes, and deleted once', async () => {
  const [a, b] = [node('a'), node('b')]
  const { call, create } = join(a, b)
  const ids = [(await create('first', ['a'])).volumeId, (await create('second', ['b'])).volumeId]
  const take = (name: string, sourceVolumeIds: readonly string[]) => call('createVolumeGroupSnapshot', { name, sourceVolumeIds })
  await assert.rejects(take('both', ids), hasCode('FAILED_PRECONDITION'))
  await assert.rejects(take('gone', ['vol-unknown']), hasCode('NOT_FOUND'))
  const { groupSnapshot } = await take('one', ids.slice(1))
  const { groupSnapshotId, snapshots } = groupSnapshot
  const request = { groupSnapshotId, snapshotIds: snapshots.map(({ snapshotId }) => snapshotId) }
  assert.equal((await call('getVolumeGroupSnapshot', request)).groupSnapshot.groupSnapshotId, groupSnapshotId)
  a.calls.length = 0
  await call('deleteVolumeGroupSnapshot', request)
  assert.deepEqual(a.calls, [])
  await call('deleteVolumeGroupSnapshot', request)
  await assert.rejects(call('getVolumeGroupSnapshot', request), hasCode('NOT_FOUND'))
})
