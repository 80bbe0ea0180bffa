/**
 * What the host path driver has in the API of a local cluster (L5): its CSIDriver and the rights of its controllers, restored at each start, and its classes,
 * which belong to the user once they are made. All of it is removed when the driver is turned off.
 */
import type { CSIDriver } from '#api/gen/types/storage.v1'
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { clusterRoleBindings, clusterRoles, csiDrivers, csiStorageCapacities, customResourceDefinitions, storageClasses } from '#client/builtIn'
import type { Client, NewObject, Resource } from '#client/client'
import { unlessGone } from '#client/unlessGone'
import { csiControllerRules } from '#csi/controllers/rights'
import { volumeGroupSnapshotClasses, volumeGroupSnapshotContents, volumeGroupSnapshots } from '#csi/controllers/snapshotter/groupTypes'
import { createMissingDefinitions, snapshotDefinitions } from '#csi/controllers/snapshotter/snapshotDefinitions'
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#csi/controllers/snapshotter/snapshotTypes'
import { hostPathDriverName as driver } from '#csi/hostpath/driver'
import { applyRights, type ClusterRights, fieldManager } from '../clusterRights.ts'
import { csiHostPathUser } from './csiHostPathOptions.ts'

/** The name of the StorageClass, the VolumeSnapshotClass and the VolumeGroupSnapshotClass. */
const className = 'csi-hostpath'

const snapshotKinds = [
  ...[volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots],
  ...[volumeGroupSnapshotClasses, volumeGroupSnapshotContents, volumeGroupSnapshots],
] as readonly Resource<KubeObject>[]

const rights: ClusterRights = { name: 'skiff:csi-hostpath', rules: csiControllerRules, subject: { user: csiHostPathUser } }

const csiDriver: CSIDriver = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: driver },
  spec: { attachRequired: true, podInfoOnMount: true, fsGroupPolicy: 'File', storageCapacity: true, volumeLifecycleModes: ['Persistent'] },
}

/** Idempotent. Rights and the CSIDriver are restored, classes that are there stay as they are. */
export async function ensureCsiHostPath(client: Client, signal: AbortSignal): Promise<void> {
  await applyRights(client, rights, signal)
  await client.of(csiDrivers).patch({ name: driver }, 'apply', csiDriver, { fieldManager, force: true, signal })
  await createMissingDefinitions(client, signal, fieldManager)
  const storageClass = {
    metadata: { name: className },
    ...{ provisioner: driver, reclaimPolicy: 'Delete', volumeBindingMode: 'WaitForFirstConsumer', allowVolumeExpansion: true },
  } as const
  await createUnlessThere(client, storageClasses, storageClass, signal)
  for (const classes of [volumeSnapshotClasses, volumeGroupSnapshotClasses])
    await createUnlessThere(client, classes, { metadata: { name: className }, driver, deletionPolicy: 'Delete' }, signal)
}

async function createUnlessThere<T extends KubeObject>(client: Client, resource: Resource<T>, object: NewObject<T>, signal: AbortSignal): Promise<void> {
  try {
    await client.of(resource).create(object, { fieldManager, signal })
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
  }
}

/** Idempotent. Call only when the driver has no volumes. */
export async function removeCsiHostPath(client: Client, signal: AbortSignal): Promise<void> {
  const remove = <T extends KubeObject>(resource: Resource<T>, name: string) => unlessGone(() => client.of(resource).delete({ name }, { signal }))
  await remove(storageClasses, className)
  await remove(volumeSnapshotClasses, className)
  await remove(volumeGroupSnapshotClasses, className)
  await removeDefinitions(client, signal)
  const labelSelector = `csi.storage.k8s.io/drivername=${driver}`
  for (const { metadata } of (await client.of(csiStorageCapacities).list({ labelSelector, signal })).items)
    await unlessGone(() => client.of(csiStorageCapacities).delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { signal }))
  await remove(csiDrivers, driver)
  await remove(clusterRoleBindings, rights.name)
  await remove(clusterRoles, rights.name)
}

/** Keeps definitions that another manager created, and all of them while any snapshot object exists. */
async function removeDefinitions(client: Client, signal: AbortSignal): Promise<void> {
  for (const resource of snapshotKinds) {
    let hasObjects = false
    await unlessGone(async () => {
      hasObjects = (await client.of(resource).list({ limit: 1, signal })).items.length > 0
    })
    if (hasObjects) return
  }
  for (const { metadata } of snapshotDefinitions) {
    const ref = { name: metadata?.name ?? '' }
    await unlessGone(async () => {
      const { metadata: found } = await client.of(customResourceDefinitions).get(ref, { signal })
      if (found.managedFields?.some(({ manager }) => manager === fieldManager)) await client.of(customResourceDefinitions).delete(ref, { signal })
    })
  }
}
