/**
 * Block volumes of CSI drivers (L3): staged and published at places of the plugin's directory. A link in the pod's directory leads to the device, and shows a later
 * kubelet that the pod uses the volume. Upstream: pkg/volume/csi/csi_block.go (v1.36).
 */
import { lstat, rm, symlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { exists, makeDirectory } from '#host/files'
import type { TearDownRequest, VolumeContext, VolumeRequest } from '../volumePlugin.ts'
import { findDriver } from './cluster.ts'
import { csiText } from './csiText.ts'
import { isFinal } from './drivers.ts'
import { type BlockPlaces, blockPlaces, podOf } from './places.ts'
import { publishedData, publishRequest, unpublish } from './publishing.ts'
import { capabilityOf, csiVolumeOf } from './source.ts'
import { operationOn, stageRequest, unstage } from './staging.ts'
import { loadData, removeEmpty, saveData } from './volumeData.ts'

export async function stageBlock(volumes: VolumeContext, { pod, spec, directory, stagingPath: place = '' }: VolumeRequest): Promise<void> {
  const { context, csi, host } = volumes
  const volume = csiVolumeOf(spec, pod)
  const places = blockPlaces(volumes, spec.name)
  const operation = operationOn(volumes, volume.driver, 'blockMapper.SetUpDevice failed to get CSI client')
  await saveData(host, places.data, publishedData(volume, context.config.nodeName))
  await linkOnce(host.path(directory), `${places.published}/${podOf(directory)}`)
  if (csi.staged.has(place) || !(await operation.supports('STAGE_UNSTAGE_VOLUME'))) return
  const request = await stageRequest(volumes, volume, place, await capabilityOf(volume, operation))
  await makeDirectory(host.path(place), 0o750)
  try {
    await operation.call('NodeStageVolume', request)
  } catch (error) {
    if (isFinal(error)) await removePlaces(volumes, places)
    throw error
  }
  csi.staged.add(place)
}

async function linkOnce(link: string, target: string): Promise<void> {
  await makeDirectory(dirname(link), 0o750)
  if (!(await lstat(link).catch(() => undefined))) await symlink(target, link)
}

export async function publishBlock(volumes: VolumeContext, request: VolumeRequest): Promise<string> {
  const { context, host } = volumes
  const volume = csiVolumeOf(request.spec, request.pod)
  const { published } = blockPlaces(volumes, request.spec.name)
  const target = `${published}/${podOf(request.directory)}`
  const operation = operationOn(volumes, volume.driver, 'blockMapper.MapPodDevice failed to get CSI client')
  const driver = await findDriver(context.client, volume.driver)
  await makeDirectory(host.path(published), 0o750)
  await operation.call('NodePublishVolume', await publishRequest(volumes, { volume, request, driver, operation, target, group: undefined }))
  return target
}

export async function unpublishBlock(volumes: VolumeContext, { directory }: TearDownRequest): Promise<void> {
  const { published, data: file } = blockPlaces(volumes, basename(directory))
  const data = await loadData(volumes.host, file)
  if (!data) return
  const operation = operationOn(volumes, data.driverName, 'blockMapper.UnmapPodDevice failed to get CSI client')
  const target = `${published}/${podOf(directory)}`
  volumes.csi.usages.forget(target)
  await unpublish(operation, data.volumeHandle, target, 'blockMapper.unpublishVolumeForBlock failed')
}

/** @param name the PersistentVolume's */
export async function unstageBlock(volumes: VolumeContext, name: string): Promise<void> {
  const { csi, host } = volumes
  const places = blockPlaces(volumes, name)
  const data = await loadData(host, places.data)
  csi.staged.delete(places.staging)
  if (data && (await exists(host.path(places.staging)))) {
    const operation = operationOn(volumes, data.driverName, 'blockMapper.TearDownDevice failed to get CSI client')
    await unstage(operation, data.volumeHandle, places.staging, 'blockMapper.unstageVolumeForBlock failed')
  }
  await removePlaces(volumes, places)
}

/** Leaves everything when another pod still has the volume. */
async function removePlaces({ context, host }: VolumeContext, { own, staging, published }: BlockPlaces): Promise<void> {
  try {
    for (const place of [published, staging]) await removeEmpty(host, place)
    await rm(host.path(own), { recursive: true, force: true })
  } catch (error) {
    context.log.v(4).info(csiText('Failed to clean up block volume directory'), { error: messageOf(error) })
  }
}
