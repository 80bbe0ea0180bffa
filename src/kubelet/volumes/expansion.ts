/**
 * Grows the filesystem of a volume while it is being mounted (L3), when its PersistentVolume has grown and its claim does not report the new size yet.
 * Upstream: operation_generator.go expandVolumeDuringMount, volume/util/resize_util.go MarkFSResizeFinished (v1.36).
 */
import { compareQuantities } from '#api/machinery/quantity'
import { persistentVolumeClaims } from '#client/builtIn'
import { podReference } from '../core/podReference.ts'
import type { VolumeContext, VolumePlugin, VolumeRequest } from './volumePlugin.ts'

const resizeConditions = ['FileSystemResizePending', 'Resizing', 'ControllerResizeError', 'NodeResizeError']

/** @throws Error when the volume cannot grow; the pod must not start with it */
export async function expandDuringMount(volumes: VolumeContext, plugin: VolumePlugin, request: VolumeRequest, path: string): Promise<void> {
  const { persistentVolume, claim, readOnly, name } = request.spec
  const newSize = persistentVolume?.spec.capacity?.storage
  const oldSize = claim?.status?.capacity?.storage ?? '0'
  if (!plugin.expansion || !claim || newSize === undefined || compareQuantities(oldSize, newSize) >= 0) return
  const { name: claimName, namespace, uid } = claim.metadata
  const about = [podReference(request.pod), { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name: claimName, uid }]
  const event = (type: 'Normal' | 'Warning', reason: string, message: string) => {
    for (const object of about) volumes.context.recorder.event(object, type, reason, message)
  }
  if (readOnly) {
    event('Warning', 'FileSystemResizeFailed', `MountVolume.NodeExpandVolume failed for volume "${name}" requested read-only file system`)
    return
  }
  await plugin.expansion.nodeExpand(volumes, request, path, newSize)
  event('Normal', 'FileSystemResizeSuccessful', `MountVolume.NodeExpandVolume succeeded for volume "${name}" ${request.pod.spec.nodeName ?? ''}`)
  const conditions = (claim.status?.conditions ?? []).filter(({ type }) => !resizeConditions.includes(type))
  const resizeStatus = claim.status?.allocatedResourceStatuses ? { allocatedResourceStatuses: { storage: null } } : {}
  const status = { capacity: { storage: newSize }, conditions, ...resizeStatus }
  await volumes.context.client
    .of(persistentVolumeClaims)
    .patch({ namespace: namespace ?? '', name: claimName ?? '' }, 'merge', { status }, { subresource: 'status' })
}
