/**
 * Stages a filesystem of a CSI driver (L3): once for all pods of the node, where the driver has this step. Upstream: pkg/volume/csi/csi_attacher.go
 * MountDevice, UnmountDevice (v1.36).
 */
import { dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { makeDirectory } from '#host/files'
import { fsGroupOf, type VolumeContext, type VolumeRequest } from '../volumePlugin.ts'
import { credentials, publishContext } from './cluster.ts'
import { csiText } from './csiText.ts'
import { type DriverOperation, isFinal } from './drivers.ts'
import { type CsiVolume, capabilityOf, csiVolumeOf } from './source.ts'
import { dataFile, loadData, removeEmpty, removePlace, saveData, stagedFile } from './volumeData.ts'

/** Starts an operation. @param step what the message calls it @throws Error when the driver is not registered */
export function operationOn({ csi }: VolumeContext, driver: string, step: string): DriverOperation {
  try {
    return csi.operation(driver)
  } catch (error) {
    throw new Error(csiText(`${step}: ${messageOf(error)}`), { cause: error })
  }
}

/** Idempotent. @throws Error with upstream's message; after a final error of the driver nothing is staged */
export async function stageFilesystem(volumes: VolumeContext, { pod, spec, directory, stagingPath: place = '' }: VolumeRequest): Promise<void> {
  const { csi, host } = volumes
  const volume = csiVolumeOf(spec, pod)
  const operation = operationOn(volumes, volume.driver, 'attacher.MountDevice failed to create newCsiDriverClient')
  if (!(await operation.supports('STAGE_UNSTAGE_VOLUME'))) return
  const data = { volumeHandle: volume.handle, driverName: volume.driver }
  await saveData(host, `${directory}/${stagedFile}`, { specVolID: spec.name, ...data })
  if (csi.staged.has(place)) return
  const group = (await operation.supports('VOLUME_MOUNT_GROUP')) ? fsGroupOf(pod) : undefined
  const request = await stageRequest(volumes, volume, place, await capabilityOf(volume, operation, group))
  await makeDirectory(host.path(place), 0o750)
  await saveData(host, `${dirname(place)}/${dataFile}`, data)
  try {
    await operation.call('NodeStageVolume', request)
  } catch (error) {
    if (isFinal(error)) await removeStaged(volumes, place)
    throw error
  }
  csi.staged.add(place)
}

/** The same for block volumes. */
export async function stageRequest({ context }: VolumeContext, volume: CsiVolume, place: string, volumeCapability: object): Promise<object> {
  const { client, config } = context
  return {
    volumeId: volume.handle,
    publishContext: await publishContext(client, volume, config.nodeName),
    stagingTargetPath: place,
    volumeCapability,
    secrets: await credentials(client, 'NodeStageSecretRef', volume.stageSecret),
    volumeContext: volume.attributes,
  }
}

export async function unstageFilesystem(volumes: VolumeContext, place: string): Promise<void> {
  const data = await loadData(volumes.host, `${dirname(place)}/${dataFile}`)
  volumes.csi.staged.delete(place)
  if (!data) return
  const operation = operationOn(volumes, data.driverName, 'attacher.UnmountDevice failed to create newCsiDriverClient')
  await unstage(operation, data.volumeHandle, place, 'attacher.UnmountDevice failed')
  await removeStaged(volumes, place)
}

/** @param step what the message calls it */
export async function unstage(operation: DriverOperation, volumeId: string, stagingTargetPath: string, step: string): Promise<void> {
  try {
    if (await operation.supports('STAGE_UNSTAGE_VOLUME')) await operation.call('NodeUnstageVolume', { volumeId, stagingTargetPath })
  } catch (error) {
    throw new Error(csiText(`${step}: ${messageOf(error)}`), { cause: error })
  }
}

async function removeStaged({ host }: VolumeContext, place: string): Promise<void> {
  await removePlace(host, place)
  await removeEmpty(host, dirname(place))
}
