/**
 * Storage of a local cluster (L5): the rights of the local-path provisioner, brought back at each start, and the default StorageClass, created once. A user who
 * deletes or changes the class keeps that.
 */
import type { StorageClass } from '#api/gen/types/storage.v1'
import { localPathProvisioner as provisioner } from '#api/helpers/localPath'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import { namespaces, storageClasses } from '#client/builtIn'
import type { Client } from '#client/client'
import { applyRights, type ClusterRights, fieldManager } from './clusterRights.ts'

/**
 * The account is the one of the controller's descriptor, whose code is not read here: the API is served before. The shared informers of the controllers list and
 * watch; these are the writes, and reads of what a cache does not have yet.
 */
export const localPathRights: ClusterRights = {
  name: 'skiff:controller:local-path-provisioner',
  rules: [
    { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['create', 'delete', 'patch'] },
    { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'patch'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
  ],
  subject: { serviceAccount: 'local-path-provisioner', namespace: 'kube-system' },
}

export async function ensureLocalPathAccess(client: Client, signal: AbortSignal): Promise<void> {
  await applyRights(client, localPathRights, signal)
}

const standard: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
}

/** On the namespace kube-system: the class was created, or the cluster had classes of its own. */
const doneAnnotation = 'skiff.dev/default-storage-class'

export async function createDefaultStorageClassOnce(client: Client, signal: AbortSignal): Promise<void> {
  const system = { name: 'kube-system' }
  const { metadata } = await client.of(namespaces).get(system, { signal })
  if (ownValue(metadata.annotations, doneAnnotation) !== undefined) return
  const { items } = await client.of(storageClasses).list({ limit: 1, signal })
  if (items.length === 0) await createClass(client, signal)
  await client.of(namespaces).patch(system, 'merge', { metadata: { annotations: { [doneAnnotation]: 'created' } } }, { fieldManager, signal })
}

async function createClass(client: Client, signal: AbortSignal): Promise<void> {
  try {
    await client.of(storageClasses).create(standard, { fieldManager, signal })
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
  }
}
