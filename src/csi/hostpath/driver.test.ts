/** The host path driver without mounts: restarts in the middle of an operation, a full disk, hostile ids. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { createExec, type Exec } from '#host/exec'
import type { CsiController, CsiDriver, CsiGroupController, CsiNode } from '../server/csiTypes.ts'
import { openHostPathDriver } from './driver.ts'

const root = mkdtempSync(path.join(os.tmpdir(), 'csi-hostpath-'))
after(() => rmSync(root, { recursive: true }))

type Opened = CsiDriver & { readonly controller: Required<CsiController>; readonly groupController: CsiGroupController; readonly node: Required<CsiNode> }

const newDirectory = () => mkdtempSync(path.join(root, 'state-'))
const open = async (directory: string, exec: Exec = createExec()) =>
  (await openHostPathDriver({ directory, exec, nodeId: 'node-1', capacityBytes: 10_000_000, now: () => 1500 })) as Opened

const secrets = {}
const mount = { mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } } as const
const block = { block: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } } as const
const range = (requiredBytes: number, limitBytes = 0) => ({ requiredBytes, limitBytes })
const create = (name: string, more: object = {}) => ({
  name,
  capacityRange: range(1000),
  volumeCapabilities: [mount],
  parameters: {},
  secrets,
  volumeContentSource: null,
  accessibilityRequirements: null,
  mutableParameters: {},
  ...more,
})
const snapshotOf = (sourceVolumeId: string, name = 'snapshot') => ({ name, sourceVolumeId, parameters: {}, secrets })
const contentIn = (directory: string) => readdirSync(path.join(directory, 'content')).sort()
const fileIn = (directory: string, id: string, name = 'file') => path.join(directory, 'content', id, 'data', name)
const hasCode = (code: string) => (error: { code?: string }) => error.code === code

test('STO-08 volumes and snapshots survive a restart, and the same names give the same ids', async () => {
  const directory = newDirectory()
  const first = (await open(directory)).controller
  const { volume } = await first.createVolume(create('a'))
  const { snapshot } = await first.createSnapshot(snapshotOf(volume.volumeId))
  const second = (await open(directory)).controller
  assert.deepEqual((await second.createVolume(create('a'))).volume, volume)
  assert.deepEqual((await second.createSnapshot(snapshotOf(volume.volumeId))).snapshot, snapshot)
  assert.deepEqual(contentIn(directory), [snapshot.snapshotId, volume.volumeId])
})

test('STO-08 a start removes the content of a create and of a delete that a crash interrupted', async () => {
  const directory = newDirectory()
  const { volume } = await (await open(directory)).controller.createVolume(create('a'))
  const state = readFileSync(path.join(directory, 'state.json'))
  const second = (await open(directory)).controller
  const { volume: lost } = await second.createVolume(create('b'))
  await second.createSnapshot(snapshotOf(lost.volumeId))
  // The crash is before the new state is stored.
  writeFileSync(path.join(directory, 'state.json'), state)
  const third = (await open(directory)).controller
  assert.deepEqual(contentIn(directory), [volume.volumeId])
  assert.deepEqual(
    (await third.listVolumes({ maxEntries: 0, startingToken: '' })).entries.map((one) => one.volume.volumeId),
    [volume.volumeId],
  )
})

test('STO-08 a damaged state file is an error, and the content stays', async () => {
  const directory = newDirectory()
  const { volume } = await (await open(directory)).controller.createVolume(create('a'))
  writeFileSync(path.join(directory, 'state.json'), '{')
  await assert.rejects(open(directory), SyntaxError)
  assert.deepEqual(contentIn(directory), [volume.volumeId])
})

test('STO-08 a state file that is missing while there is content is an error, and content that is no volume stays', async () => {
  const directory = newDirectory()
  const { volume } = await (await open(directory)).controller.createVolume(create('a'))
  mkdirSync(path.join(directory, 'content', 'lost+found'))
  await open(directory)
  rmSync(path.join(directory, 'state.json'))
  await assert.rejects(open(directory), /state\.json is missing, and .* holds 1 volumes or snapshots/)
  assert.deepEqual(contentIn(directory), ['lost+found', volume.volumeId])
})

for (const [first, second] of [
  ['SINGLE_NODE_SINGLE_WRITER', 'SINGLE_NODE_MULTI_WRITER'],
  ['SINGLE_NODE_MULTI_WRITER', 'SINGLE_NODE_SINGLE_WRITER'],
] as const) {
  test(`STO-08 a volume that is published as ${first} is not published at another path as ${second}`, async () => {
    const directory = newDirectory()
    const { volume } = await (await open(directory)).controller.createVolume(create('a'))
    const file = path.join(directory, 'state.json')
    const state = JSON.parse(readFileSync(file, 'utf8'))
    Object.assign(state.volumes[0], { stagingPath: '/staged', published: [['/pod-a', { readonly: false, mode: first }]] })
    writeFileSync(file, JSON.stringify(state))
    const request = { volumeId: volume.volumeId, stagingTargetPath: '/staged', targetPath: '/pod-b', readonly: false, secrets }
    const capability = { mount: {}, accessMode: { mode: second } } as const
    const { node } = await open(directory)
    await assert.rejects(
      async () => node.nodePublishVolume({ ...request, publishContext: {}, volumeContext: {}, volumeCapability: capability }),
      hasCode('FAILED_PRECONDITION'),
    )
  })
}

test('STO-13 a disk that fills up while content is copied gives RESOURCE_EXHAUSTED, and no content remains', async () => {
  const directory = newDirectory()
  const real = createExec()
  const failed = { code: 1, stdout: '', stderr: "cp: error writing 'x': No space left on device", timedOut: false }
  const full: Exec = { ...real, run: async (command, args, options) => (args.includes('cp') ? failed : real.run(command, args, options)) }
  const { controller, groupController } = await open(directory, full)
  const { volume } = await controller.createVolume(create('a'))
  await assert.rejects(async () => controller.createSnapshot(snapshotOf(volume.volumeId)), hasCode('RESOURCE_EXHAUSTED'))
  await assert.rejects(
    async () => groupController.createVolumeGroupSnapshot({ name: 'g', sourceVolumeIds: [volume.volumeId], parameters: {}, secrets }),
    hasCode('RESOURCE_EXHAUSTED'),
  )
  assert.deepEqual(contentIn(directory), [volume.volumeId])
  assert.deepEqual((await controller.listSnapshots({ maxEntries: 0, startingToken: '', sourceVolumeId: '', snapshotId: '', secrets })).entries, [])
})

test('STO-08 an id that is a path names no volume: nothing outside the content is read or removed', async () => {
  const directory = newDirectory()
  const { controller, node } = await open(directory)
  const kept = path.join(directory, 'kept')
  writeFileSync(kept, '')
  for (const volumeId of ['../kept', '..', '.', kept, '__proto__', 'vol-x/../../kept']) {
    await controller.deleteVolume({ volumeId, secrets })
    await controller.deleteSnapshot({ snapshotId: volumeId, secrets })
    await assert.rejects(async () => controller.createSnapshot(snapshotOf(volumeId)), hasCode('NOT_FOUND'))
    await assert.rejects(async () => controller.controllerGetVolume({ volumeId }), hasCode('NOT_FOUND'))
    await assert.rejects(async () => controller.createVolume(create('a', { volumeContentSource: { volume: { volumeId } } })), hasCode('NOT_FOUND'))
    await assert.rejects(async () => node.nodeGetVolumeStats({ volumeId, volumePath: '/', stagingTargetPath: '' }), hasCode('NOT_FOUND'))
  }
  assert.ok(existsSync(kept))
  await controller.createVolume(create('../../name'))
  assert.match(contentIn(directory).join(), /^vol-[0-9a-f-]{36}$/)
})

test('STO-14 a clone and a restored snapshot hold the content of that time, and stay when the original is deleted', async () => {
  const directory = newDirectory()
  const { controller } = await open(directory)
  const { volume } = await controller.createVolume(create('a'))
  writeFileSync(fileIn(directory, volume.volumeId), 'old')
  const { snapshot } = await controller.createSnapshot(snapshotOf(volume.volumeId))
  writeFileSync(fileIn(directory, volume.volumeId), 'new')
  const { volume: clone } = await controller.createVolume(create('b', { volumeContentSource: { volume: { volumeId: volume.volumeId } } }))
  await controller.deleteVolume({ volumeId: volume.volumeId, secrets })
  const { volume: restored } = await controller.createVolume(create('c', { volumeContentSource: { snapshot: { snapshotId: snapshot.snapshotId } } }))
  assert.equal(readFileSync(fileIn(directory, clone.volumeId), 'utf8'), 'new')
  assert.equal(readFileSync(fileIn(directory, restored.volumeId), 'utf8'), 'old')
  const smaller = create('d', { capacityRange: range(1, 2), volumeContentSource: { snapshot: { snapshotId: snapshot.snapshotId } } })
  await assert.rejects(async () => controller.createVolume(smaller), hasCode('OUT_OF_RANGE'))
})

test('STO-12 a block volume is a sparse file that grows, its clone is sparse, and the driver gives no more than its capacity', async () => {
  const directory = newDirectory()
  const { controller } = await open(directory)
  const disk = (id: string) => statSync(path.join(directory, 'content', id, 'disk'))
  const { volume } = await controller.createVolume(create('a', { volumeCapabilities: [block], capacityRange: range(2_000_000) }))
  const { volumeId } = volume
  await controller.controllerExpandVolume({ volumeId, capacityRange: range(3_000_000), volumeCapability: null, secrets })
  const { volume: clone } = await controller.createVolume(create('b', { volumeCapabilities: [block], volumeContentSource: { volume: { volumeId } } }))
  assert.deepEqual([disk(volumeId).size, disk(clone.volumeId).size, clone.capacityBytes, disk(clone.volumeId).blocks], [3_000_000, 3_000_000, 3_000_000, 0])
  assert.equal((await controller.getCapacity({ volumeCapabilities: [], parameters: {}, accessibleTopology: null })).availableCapacity, 4_000_000)
  await assert.rejects(async () => controller.createVolume(create('c', { capacityRange: range(5_000_000) })), hasCode('RESOURCE_EXHAUSTED'))
  await assert.rejects(async () => controller.createVolume(create('c', { capacityRange: range(11_000_000) })), hasCode('OUT_OF_RANGE'))
  await assert.rejects(
    async () => controller.controllerExpandVolume({ volumeId, capacityRange: range(9_000_000), volumeCapability: null, secrets }),
    hasCode('RESOURCE_EXHAUSTED'),
  )
  assert.equal(disk(volumeId).size, 3_000_000)
})

test('STO-13 a snapshot of a group is deleted with its group alone', async () => {
  const { controller, groupController } = await open(newDirectory())
  const ids = [(await controller.createVolume(create('a'))).volume.volumeId, (await controller.createVolume(create('b'))).volume.volumeId]
  const { groupSnapshot } = await groupController.createVolumeGroupSnapshot({ name: 'g', sourceVolumeIds: ids, parameters: {}, secrets })
  const snapshotIds = groupSnapshot.snapshots.map(({ snapshotId }) => snapshotId)
  assert.deepEqual(groupSnapshot.snapshots.map(({ sourceVolumeId }) => sourceVolumeId).sort(), ids.sort())
  await assert.rejects(async () => controller.deleteSnapshot({ snapshotId: snapshotIds[0] ?? '', secrets }), hasCode('INVALID_ARGUMENT'))
  await groupController.deleteVolumeGroupSnapshot({ groupSnapshotId: groupSnapshot.groupSnapshotId, snapshotIds, secrets })
  await assert.rejects(async () => controller.getSnapshot({ snapshotId: snapshotIds[0] ?? '', secrets }), hasCode('NOT_FOUND'))
})
