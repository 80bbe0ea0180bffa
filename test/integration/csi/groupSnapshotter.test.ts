/** Snapshots of several claims at one moment, with the host path driver: VolumeGroupSnapshot objects take, bind and delete them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frozen } from '#api/machinery/meta'
import { clusterRoleBindings, clusterRoles, customResourceDefinitions, persistentVolumeClaims } from '#client/builtIn'
import { csiControllerRules } from '#csi/controllers/rights'
import {
  groupSnapshotGroup,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
  volumeGroupSnapshots,
} from '#csi/controllers/snapshotter/groupTypes'
import { type VolumeSnapshot, volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#csi/controllers/snapshotter/snapshotTypes'
import { type CsiDriver, CsiError, type CsiGroupController } from '#csi/server/csiTypes'
import type { TestCluster } from '#testing/cluster'
import { CsiCluster, type CsiSetupOptions, driverName, type FullDriver, namespace } from './csiSetup.ts'

const selector = { matchLabels: { app: 'shop' } }
const inGroup = { labels: selector.matchLabels }

/** Two claims of one application, and another one. */
async function start(setup: CsiSetupOptions = {}, classFields: Partial<VolumeGroupSnapshotClass> = {}) {
  const csi = await CsiCluster.start(setup)
  const { client } = csi.cluster
  await csi.addClass('fast')
  for (const name of ['orders', 'stock']) await csi.addClaim(name, 'fast', {}, inGroup)
  await csi.addClaim('other', 'fast')
  for (const name of ['orders', 'stock', 'other']) await csi.boundVolume(name)
  const annotations = { 'groupsnapshot.storage.kubernetes.io/is-default-class': 'true' }
  const object = { metadata: { name: 'groups', annotations }, driver: driverName, deletionPolicy: 'Delete', ...classFields }
  await csi.cluster.until(async () => (await client.of(volumeGroupSnapshotClasses).create(object)) !== undefined, 30_000)
  return { csi, client }
}

const take = ({ cluster }: CsiCluster, name: string, spec: VolumeGroupSnapshot['spec'] = { source: { selector } }) =>
  cluster.client.of(volumeGroupSnapshots).create({ metadata: { namespace, name }, spec })

const untilGroup = ({ cluster }: CsiCluster, name: string, matches: (group: Frozen<VolumeGroupSnapshot>) => boolean | undefined) =>
  cluster.until(async () => {
    const group = await cluster.client.of(volumeGroupSnapshots).get({ namespace, name })
    return matches(group) ? group : undefined
  }, 30_000)
const untilReady = (csi: CsiCluster, name: string) => untilGroup(csi, name, ({ status }) => status?.readyToUse)

const untilSnapshots = ({ cluster }: CsiCluster, matches: (snapshots: readonly Frozen<VolumeSnapshot>[]) => boolean) =>
  cluster.until(async () => {
    const { items } = await cluster.client.of(volumeSnapshots).list()
    return matches(items) ? items : undefined
  }, 30_000)
const untilMembers = (csi: CsiCluster, group: string) =>
  untilSnapshots(csi, (all) => all.length === 2 && all.every(({ status }) => status?.readyToUse && status.volumeGroupSnapshotName === group))

async function snapshotsOf({ driver }: CsiCluster) {
  const { entries } = await driver.controller.listSnapshots({ maxEntries: 0, startingToken: '', sourceVolumeId: '', snapshotId: '', secrets: {} })
  return entries.map(({ snapshot }) => snapshot)
}

/** A driver with other methods for groups. */
function changed(methods: (real: CsiGroupController) => Partial<CsiGroupController>): (driver: FullDriver) => CsiDriver {
  return (driver) => {
    const real = driver.groupController as CsiGroupController
    return { ...driver, groupController: { ...real, ...methods(real) } }
  }
}

test('STO-13 a group snapshot takes the selected claims at one moment, each can be restored, and all of it is deleted together', async () => {
  const { csi, client } = await start()
  await using _csi = csi
  const { metadata } = await take(csi, 'shop')
  const { spec, status } = await untilReady(csi, 'shop')
  const contentName = `groupsnapcontent-${metadata.uid}`
  assert.deepEqual([spec.volumeGroupSnapshotClassName, status?.boundVolumeGroupSnapshotContentName], ['groups', contentName])
  const members = await untilMembers(csi, 'shop')
  assert.deepEqual(members.map((one) => one.spec.source.persistentVolumeClaimName).sort(), ['orders', 'stock'])
  assert.deepEqual(new Set(members.flatMap((one) => one.metadata.ownerReferences?.map(({ uid }) => uid))), new Set([metadata.uid]))
  const taken = await snapshotsOf(csi)
  const content = await client.of(volumeGroupSnapshotContents).get({ name: contentName })
  assert.deepEqual(new Set(taken.map(({ groupSnapshotId }) => groupSnapshotId)), new Set([content.status?.volumeGroupSnapshotHandle]))
  const [first] = members
  await csi.addClaim('restored', 'fast', { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: first?.metadata.name ?? '' } })
  const restored = await csi.boundVolume('restored')
  const { volume } = await csi.driver.controller.controllerGetVolume({ volumeId: restored.spec.csi?.volumeHandle ?? '' })
  assert.ok(taken.some(({ snapshotId }) => snapshotId === volume.contentSource?.snapshot?.snapshotId))
  await client.of(volumeGroupSnapshots).delete({ namespace, name: 'shop' })
  await csi.untilGone(volumeGroupSnapshots, { namespace, name: 'shop' })
  await csi.untilGone(volumeGroupSnapshotContents, { name: contentName })
  await untilSnapshots(csi, (all) => all.length === 0)
  await csi.cluster.until(async () => (await client.of(volumeSnapshotContents).list()).items.length === 0, 30_000)
  assert.deepEqual(await snapshotsOf(csi), [])
})

test('STO-13 one snapshot of a group is not deleted alone: it waits for its group', async () => {
  const { csi, client } = await start()
  await using _csi = csi
  await take(csi, 'shop')
  await untilReady(csi, 'shop')
  const [{ metadata } = assert.fail('the group has no snapshot')] = await untilMembers(csi, 'shop')
  const name = metadata.name ?? ''
  await client.of(volumeSnapshots).delete({ namespace, name })
  assert.match(
    await csi.untilEvent(name, 'SnapshotDeletePending'),
    /is not allowed as it belongs to group snapshot default\/shop\. Deleting the group snapshot/,
  )
  assert.equal((await snapshotsOf(csi)).length, 2)
  await client.of(volumeGroupSnapshots).delete({ namespace, name: 'shop' })
  await untilSnapshots(csi, (all) => all.length === 0)
  assert.deepEqual(await snapshotsOf(csi), [])
})

test('STO-13 with the policy Retain the snapshots stay, and a group of an administrator’s contents is bound to them', async () => {
  const { csi, client } = await start({}, { deletionPolicy: 'Retain' })
  await using _csi = csi
  await take(csi, 'shop')
  await untilReady(csi, 'shop')
  await untilMembers(csi, 'shop')
  await client.of(volumeGroupSnapshots).delete({ namespace, name: 'shop' })
  await untilSnapshots(csi, (all) => all.length === 0)
  const [{ snapshotId: snapshotHandle, groupSnapshotId: volumeGroupSnapshotHandle = '' } = assert.fail('nothing is left'), ...others] = await snapshotsOf(csi)
  const volumeSnapshotHandles = [snapshotHandle, ...others.map(({ snapshotId }) => snapshotId)]
  const ofDriver = { driver: driverName, deletionPolicy: 'Delete' }
  const volumeGroupSnapshotRef = { namespace, name: 'again' }
  const source = { groupSnapshotHandles: { volumeGroupSnapshotHandle, volumeSnapshotHandles } }
  await client.of(volumeGroupSnapshotContents).create({ metadata: { name: 'given' }, spec: { ...ofDriver, source, volumeGroupSnapshotRef } })
  const { metadata } = await take(csi, 'again', { source: { volumeGroupSnapshotContentName: 'given' } })
  await untilReady(csi, 'again')
  assert.equal((await client.of(volumeGroupSnapshotContents).get({ name: 'given' })).spec.volumeGroupSnapshotRef.uid, metadata.uid)
  const volumeSnapshotRef = { namespace, name: 'one' }
  await client.of(volumeSnapshotContents).create({ metadata: { name: 'one' }, spec: { ...ofDriver, source: { snapshotHandle }, volumeSnapshotRef } })
  await client.of(volumeSnapshots).create({ metadata: { namespace, name: 'one' }, spec: { source: { volumeSnapshotContentName: 'one' } } })
  const owned = await untilSnapshots(csi, ([one]) => one?.metadata.ownerReferences !== undefined)
  assert.deepEqual([owned[0]?.status?.volumeGroupSnapshotName, owned[0]?.metadata.ownerReferences?.[0]?.uid], ['again', metadata.uid])
  await client.of(volumeGroupSnapshots).delete({ namespace, name: 'again' })
  await csi.untilGone(volumeGroupSnapshots, { namespace, name: 'again' })
  await untilSnapshots(csi, (all) => all.length === 0)
  assert.deepEqual(await snapshotsOf(csi), [])
})

test('STO-13 a group that is deleted while the driver takes it and does not answer is deleted at the driver, too', async () => {
  let isStuck = true
  const { csi, client } = await start({
    driver: changed((real) => ({
      createVolumeGroupSnapshot: async (request) => {
        const answer = await real.createVolumeGroupSnapshot(request)
        if (isStuck) throw new CsiError('DEADLINE_EXCEEDED', 'it takes long')
        return answer
      },
    })),
  })
  await using _csi = csi
  await take(csi, 'shop')
  const { status } = await untilGroup(csi, 'shop', (one) => one.status?.error !== undefined)
  assert.match(
    status?.error?.message ?? '',
    /^Failed to create group snapshot: failed to take group snapshot of the volumes \[vol-\S+ vol-\S+\]: "rpc error: code = DeadlineExceeded desc = it takes long"$/,
  )
  await client.of(volumeGroupSnapshots).delete({ namespace, name: 'shop' })
  assert.equal((await snapshotsOf(csi)).length, 2)
  isStuck = false
  await csi.untilGone(volumeGroupSnapshots, { namespace, name: 'shop' })
  assert.deepEqual(await snapshotsOf(csi), [])
})

test('STO-13 a driver that finishes a group later is asked until the group is ready, and its snapshots follow', async () => {
  let isReady = false
  const { csi } = await start({
    driver: changed((real) => ({
      createVolumeGroupSnapshot: async (request) => {
        const { groupSnapshot } = await real.createVolumeGroupSnapshot(request)
        const snapshots = groupSnapshot.snapshots.map((one) => ({ ...one, readyToUse: isReady }))
        return { groupSnapshot: { ...groupSnapshot, snapshots, readyToUse: isReady } }
      },
    })),
  })
  await using _csi = csi
  await take(csi, 'shop')
  const { status } = await untilGroup(csi, 'shop', (one) => one.status?.creationTime !== undefined)
  assert.equal(status?.readyToUse, false)
  isReady = true
  await untilReady(csi, 'shop')
  await untilMembers(csi, 'shop')
})

test('STO-13 a group whose selector matches no claim says so, and is taken when a claim gets the label', async () => {
  const { csi, client } = await start()
  await using _csi = csi
  const late = { matchExpressions: [{ key: 'app', operator: 'In', values: ['late'] }] }
  await take(csi, 'late', { source: { selector: late }, volumeGroupSnapshotClassName: 'groups' })
  const { status } = await untilGroup(csi, 'late', (one) => one.status?.error !== undefined)
  assert.match(
    status?.error?.message ?? '',
    /^failed to create group snapshot content with error .*label selector .* for group snapshot not applied to any PVC"$/,
  )
  await client.of(persistentVolumeClaims).patch({ namespace, name: 'other' }, 'merge', { metadata: { labels: { app: 'late' } } })
  const ready = await untilReady(csi, 'late')
  assert.equal(ready.status?.error, undefined)
  assert.equal((await snapshotsOf(csi)).length, 1)
})

/** What an administrator granted before there were groups. */
async function grantWithoutGroups({ client }: TestCluster): Promise<void> {
  const name = 'before-groups'
  await client.of(clusterRoles).create({ metadata: { name }, rules: csiControllerRules.filter(({ apiGroups }) => !apiGroups?.includes(groupSnapshotGroup)) })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  await client
    .of(clusterRoleBindings)
    .create({ metadata: { name }, roleRef, subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'controllers' }] })
}

test('STO-13 without rights for groups single snapshots are taken all the same', async () => {
  await using csi = await CsiCluster.start({ user: 'controllers', prepare: grantWithoutGroups })
  const { client } = csi.cluster
  await csi.addClass('fast')
  await csi.addClaim('data', 'fast')
  await csi.boundVolume('data')
  const snapshotClass = { metadata: { name: 'snaps' }, driver: driverName, deletionPolicy: 'Delete' }
  await csi.cluster.until(async () => (await client.of(volumeSnapshotClasses).create(snapshotClass)) !== undefined, 30_000)
  const source = { persistentVolumeClaimName: 'data' }
  await client.of(volumeSnapshots).create({ metadata: { namespace, name: 'first' }, spec: { source, volumeSnapshotClassName: 'snaps' } })
  await untilSnapshots(csi, ([one]) => one?.status?.readyToUse === true)
  assert.ok(csi.cluster.complaints.some((line) => line.includes('Snapshots of groups are off until the next start')))
})

test('STO-13 the definitions of groups keep what is bound: a driver, a reference and a handle do not change', async () => {
  const { csi, client } = await start()
  await using _csi = csi
  await take(csi, 'shop')
  const { status } = await untilReady(csi, 'shop')
  const content = { name: status?.boundVolumeGroupSnapshotContentName ?? '' }
  const contents = client.of(volumeGroupSnapshotContents)
  const refused = /is immutable once set/
  await assert.rejects(contents.patch(content, 'merge', { spec: { driver: 'other.example.com' } }), refused)
  await assert.rejects(contents.patch(content, 'merge', { spec: { volumeGroupSnapshotRef: { uid: 'other' } } }), refused)
  await assert.rejects(contents.patch(content, 'merge', { status: { volumeGroupSnapshotHandle: 'other' } }, { subresource: 'status' }), refused)
  const both = { source: { selector, volumeGroupSnapshotContentName: 'given' } }
  await assert.rejects(take(csi, 'both', both), /exactly one of selector and volumeGroupSnapshotContentName must be set/)
  const { items } = await client.of(customResourceDefinitions).list()
  assert.equal(items.filter(({ spec }) => spec.group === groupSnapshotGroup).length, 3)
})
