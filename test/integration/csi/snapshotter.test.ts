/** Snapshots with the host path driver: they are taken, restored and deleted by VolumeSnapshot objects. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims } from '#client/builtIn'
import {
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#csi/controllers/snapshotter/snapshotTypes'
import { CsiError } from '#csi/server/csiTypes'
import { CsiCluster, type CsiSetupOptions, changed, driverName, namespace } from './csiSetup.ts'

async function start(setup: CsiSetupOptions = {}, classFields: Partial<VolumeSnapshotClass> = {}) {
  const csi = await CsiCluster.start(setup)
  const { client } = csi.cluster
  await csi.addClass('fast')
  await csi.addClaim('data', 'fast')
  const volume = await csi.boundVolume('data')
  const annotations = { 'snapshot.storage.kubernetes.io/is-default-class': 'true' }
  const object = { metadata: { name: 'snaps', annotations }, driver: driverName, deletionPolicy: 'Delete', ...classFields }
  await csi.cluster.until(async () => (await client.of(volumeSnapshotClasses).create(object)) !== undefined, 30_000)
  return { csi, client, volumeId: volume.spec.csi?.volumeHandle ?? '' }
}

const source = { persistentVolumeClaimName: 'data' }
const take = ({ cluster }: CsiCluster, name: string, spec: VolumeSnapshot['spec'] = { source }) =>
  cluster.client.of(volumeSnapshots).create({ metadata: { namespace, name }, spec })

const untilSnapshot = ({ cluster }: CsiCluster, name: string, matches: (snapshot: Frozen<VolumeSnapshot>) => boolean | undefined) =>
  cluster.until(async () => {
    const snapshot = await cluster.client.of(volumeSnapshots).get({ namespace, name })
    return matches(snapshot) ? snapshot : undefined
  }, 30_000)
const untilReady = (csi: CsiCluster, name: string) => untilSnapshot(csi, name, ({ status }) => status?.readyToUse)

async function snapshotIds({ driver }: CsiCluster): Promise<string[]> {
  const { entries } = await driver.controller.listSnapshots({ maxEntries: 0, startingToken: '', sourceVolumeId: '', snapshotId: '', secrets: {} })
  return entries.map(({ snapshot }) => snapshot.snapshotId)
}

test('STO-13 a snapshot of a claim is taken with the default class, restored to another claim, and deleted', async () => {
  const { csi, client, volumeId } = await start()
  await using _csi = csi
  const { metadata } = await take(csi, 'first')
  const { spec, status } = await untilReady(csi, 'first')
  const [snapshotId] = await snapshotIds(csi)
  const contentName = `snapcontent-${metadata.uid}`
  assert.deepEqual([spec.volumeSnapshotClassName, status?.boundVolumeSnapshotContentName, status?.restoreSize], ['snaps', contentName, '1Mi'])
  const content = await client.of(volumeSnapshotContents).get({ name: contentName })
  assert.deepEqual([content.spec.source, content.status?.snapshotHandle, content.spec.sourceVolumeMode], [{ volumeHandle: volumeId }, snapshotId, 'Filesystem'])
  await csi.cluster.until(async () => {
    const claim = await client.of(persistentVolumeClaims).get({ namespace, name: 'data' })
    return claim.metadata.finalizers?.includes('snapshot.storage.kubernetes.io/pvc-as-source-protection') === false
  }, 30_000)
  await csi.addClaim('restored', 'fast', { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'first' } })
  const restored = await csi.boundVolume('restored')
  const { volume } = await csi.driver.controller.controllerGetVolume({ volumeId: restored.spec.csi?.volumeHandle ?? '' })
  assert.equal(volume.contentSource?.snapshot?.snapshotId, snapshotId)
  await client.of(volumeSnapshots).delete({ namespace, name: 'first' })
  await csi.untilGone(volumeSnapshots, { namespace, name: 'first' })
  await csi.untilGone(volumeSnapshotContents, { name: contentName })
  assert.deepEqual(await snapshotIds(csi), [])
})

test('STO-13 with the policy Retain the content and the snapshot stay, and another VolumeSnapshot is bound to them', async () => {
  const { csi, client } = await start({}, { deletionPolicy: 'Retain' })
  await using _csi = csi
  await take(csi, 'first')
  const { status } = await untilReady(csi, 'first')
  const [snapshotHandle = ''] = await snapshotIds(csi)
  await client.of(volumeSnapshots).delete({ namespace, name: 'first' })
  await csi.untilGone(volumeSnapshots, { namespace, name: 'first' })
  const old = await client.of(volumeSnapshotContents).get({ name: status?.boundVolumeSnapshotContentName ?? '' })
  assert.equal(old.metadata.deletionTimestamp, undefined)
  const volumeSnapshotRef = { namespace, name: 'second' }
  const spec = { driver: driverName, deletionPolicy: 'Delete', source: { snapshotHandle }, volumeSnapshotRef }
  await client.of(volumeSnapshotContents).create({ metadata: { name: 'given' }, spec })
  const { metadata } = await take(csi, 'second', { source: { volumeSnapshotContentName: 'given' } })
  await untilReady(csi, 'second')
  assert.equal((await client.of(volumeSnapshotContents).get({ name: 'given' })).spec.volumeSnapshotRef.uid, metadata.uid)
  await client.of(volumeSnapshots).delete({ namespace, name: 'second' })
  await csi.untilGone(volumeSnapshots, { namespace, name: 'second' })
  assert.deepEqual(await snapshotIds(csi), [])
})

test('STO-13 a snapshot that is deleted while the driver takes it and does not answer is deleted at the driver, too', async () => {
  let isStuck = true
  const { csi, client } = await start({
    driver: changed((controller) => ({
      createSnapshot: async (request) => {
        const answer = await controller.createSnapshot(request)
        if (isStuck) throw new CsiError('DEADLINE_EXCEEDED', 'it takes long')
        return answer
      },
    })),
  })
  await using _csi = csi
  await take(csi, 'first')
  const { status } = await untilSnapshot(csi, 'first', (one) => one.status?.error !== undefined)
  assert.match(
    status?.error?.message ?? '',
    /^Failed to create snapshot: failed to take snapshot of the volume .* code = DeadlineExceeded desc = it takes long"$/,
  )
  await client.of(volumeSnapshots).delete({ namespace, name: 'first' })
  assert.equal((await snapshotIds(csi)).length, 1)
  isStuck = false
  await csi.untilGone(volumeSnapshots, { namespace, name: 'first' })
  assert.deepEqual(await snapshotIds(csi), [])
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await csi.untilGone(persistentVolumeClaims, { namespace, name: 'data' })
})

test('STO-13 a snapshot of a claim that does not exist says so, and is taken when the claim is bound', async () => {
  const { csi } = await start()
  await using _csi = csi
  await take(csi, 'early', { source: { persistentVolumeClaimName: 'late' }, volumeSnapshotClassName: 'snaps' })
  const { status } = await untilSnapshot(csi, 'early', (one) => one.status?.error !== undefined)
  assert.match(status?.error?.message ?? '', /^Failed to create snapshot content with error failed to get input parameters to create snapshot early: /)
  await csi.addClaim('late', 'fast')
  const ready = await untilReady(csi, 'early')
  assert.equal(ready.status?.error, undefined)
})
