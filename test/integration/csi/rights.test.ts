/** The rights that docs/csi.md names are enough for the controllers of a driver. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { ClusterRole } from '#api/gen/types/rbac.v1'
import { parseYaml } from '#api/machinery/yaml'
import { clusterRoleBindings, clusterRoles, persistentVolumeClaims, persistentVolumes, volumeAttachments } from '#client/builtIn'
import { csiControllerRules } from '#csi/controllers/rights'
import { volumeGroupSnapshotClasses, volumeGroupSnapshots } from '#csi/controllers/snapshotter/groupTypes'
import { volumeSnapshotClasses, volumeSnapshots } from '#csi/controllers/snapshotter/snapshotTypes'
import type { TestCluster } from '#testing/cluster'
import { CsiCluster, driverName, namespace } from './csiSetup.ts'

const user = 'csi-controller'
const page = readFileSync(new URL('../../../docs/csi.md', import.meta.url), 'utf8')
const role = parseYaml(/```yaml\n(.*?)```/s.exec(page)?.[1] ?? '') as ClusterRole

test('STO-08 the page shows the rights that the controllers of an addon get', () => {
  assert.deepEqual(role.rules, csiControllerRules)
})

async function grant({ client }: TestCluster): Promise<void> {
  await client.of(clusterRoles).create(role)
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role.metadata.name ?? '' }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }]
  await client.of(clusterRoleBindings).create({ metadata: { name: user }, roleRef, subjects })
}

test('STO-08 the controllers create, attach, expand, snapshot alone and in a group, and delete a volume with the rights of their page, and are refused nothing', async () => {
  await using csi = await CsiCluster.start({ hasLeases: true, user, prepare: grant })
  const { client } = csi.cluster
  await csi.addClass('fast', { allowVolumeExpansion: true })
  await csi.addClaim('data', 'fast')
  const { metadata } = await csi.boundVolume('data')
  const name = metadata.name ?? ''
  await client
    .of(volumeAttachments)
    .create({ metadata: { name: 'one' }, spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName: name } } })
  await csi.cluster.until(async () => (await client.of(volumeAttachments).get({ name: 'one' })).status?.attached, 30_000)
  const claim = { namespace, name: 'data' }
  await client.of(persistentVolumeClaims).patch(claim, 'merge', { spec: { resources: { requests: { storage: '2Mi' } } } })
  await csi.cluster.until(async () => (await client.of(persistentVolumeClaims).get(claim)).status.capacity?.storage === '2Mi', 30_000)
  const snapshotClass = { metadata: { name: 'snaps' }, driver: driverName, deletionPolicy: 'Delete' }
  await csi.cluster.until(async () => (await client.of(volumeSnapshotClasses).create(snapshotClass)) !== undefined, 30_000)
  const snapshot = { namespace, name: 'first' }
  const source = { persistentVolumeClaimName: 'data' }
  await client.of(volumeSnapshots).create({ metadata: snapshot, spec: { source, volumeSnapshotClassName: 'snaps' } })
  await csi.cluster.until(async () => (await client.of(volumeSnapshots).get(snapshot)).status?.readyToUse, 30_000)
  await client.of(volumeSnapshots).delete(snapshot)
  await csi.untilGone(volumeSnapshots, snapshot)
  await client.of(volumeGroupSnapshotClasses).create({ ...snapshotClass, metadata: { name: 'groups' } })
  const group = { namespace, name: 'all' }
  await client.of(volumeGroupSnapshots).create({ metadata: group, spec: { source: { selector: {} }, volumeGroupSnapshotClassName: 'groups' } })
  await csi.cluster.until(async () => (await client.of(volumeSnapshots).list()).items[0]?.status?.readyToUse, 30_000)
  await client.of(volumeGroupSnapshots).delete(group)
  await csi.cluster.until(async () => (await client.of(volumeSnapshots).list()).items.length === 0, 30_000)
  await client.of(volumeAttachments).delete({ name: 'one' })
  await client.of(persistentVolumeClaims).delete(claim)
  await csi.untilGone(persistentVolumes, { name })
  assert.deepEqual(
    csi.cluster.complaints.filter((line) => /forbidden/i.test(line)),
    [],
  )
})
