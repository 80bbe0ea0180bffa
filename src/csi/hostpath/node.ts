/**
 * The node's part of the host path driver (L2): bind mounts of a volume's directory, or of a loop device over its file. The state file names a path before
 * something is mounted there, and until nothing is, so that every call can be repeated after a crash at any point.
 */
import { rm, rmdir, stat, statfs, writeFile } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { directoryUsage } from '#host/directoryUsage'
import { check, type Exec } from '#host/exec'
import { isMissing, makeDirectory } from '#host/files'
import { createMounter, type Mounter } from '#host/mounts'
import { CsiError, type CsiNode, type NodePublishVolumeRequest, type VolumeCapability, type VolumeUsage } from '../server/csiTypes.ts'
import { dataOf, diskOf } from './content.ts'
import { conditionOf, type HostPath, topologyKey } from './controller.ts'
import { accessTypeOf, changeVolume, volumeOf } from './lookup.ts'
import type { Publication, StoredVolume } from './state.ts'

/** Flags of mount(8) that restrict what a bind mount allows. */
const mountFlags = new Set(['ro', 'nosuid', 'nodev', 'noexec', 'noatime', 'nodiratime', 'relatime', 'strictatime'])

interface OnNode extends HostPath {
  readonly exec: Exec
  readonly mounter: Mounter
}

export function createNode(hostPath: HostPath, exec: Exec): CsiNode {
  const driver: OnNode = { ...hostPath, exec, mounter: createMounter(exec) }
  const { file, nodeId, mounter } = driver
  return {
    nodeGetInfo: () => ({ nodeId, accessibleTopology: { segments: { [topologyKey]: nodeId } } }),
    nodeStageVolume: async ({ volumeId, stagingTargetPath, volumeCapability }) => {
      const volume = checkedVolume(driver, volumeId, stagingTargetPath, volumeCapability)
      if (volume.stagingPath !== undefined && volume.stagingPath !== stagingTargetPath)
        throw new CsiError('FAILED_PRECONDITION', 'the volume is staged at another path')
      await changeVolume(driver.file, volumeId, (one) => ({ ...one, stagingPath: stagingTargetPath }))
      if (volume.accessType === 'block') await attachLoop(driver, volumeId)
      else await stageDirectory(driver, volumeId, stagingTargetPath, volumeCapability)
    },
    nodeUnstageVolume: async ({ volumeId, stagingTargetPath }) => {
      const { accessType, stagingPath, published } = volumeOf(file.state, volumeId)
      if (stagingPath !== stagingTargetPath) return
      if (published.length > 0) throw new CsiError('FAILED_PRECONDITION', 'the volume is published')
      if (accessType === 'block') await detachLoop(driver, volumeId)
      else await mounter.unmount(stagingTargetPath)
      await changeVolume(driver.file, volumeId, (one) => ({ ...one, stagingPath: undefined }))
    },
    nodePublishVolume: (request) => publish(driver, request),
    nodeUnpublishVolume: async ({ volumeId, targetPath }) => {
      const volume = volumeOf(file.state, volumeId)
      if (!volume.published.some(([path]) => path === targetPath)) return
      if (await isMountPoint(driver, targetPath)) await mounter.unmount(targetPath)
      await removeTarget(volume, targetPath)
      await changeVolume(driver.file, volumeId, (one) => ({ ...one, published: one.published.filter(([path]) => path !== targetPath) }))
    },
    nodeGetVolumeStats: async ({ volumeId, volumePath }) => {
      const volume = volumeAt(driver, volumeId, volumePath)
      return { usage: await usageOf(driver, volume), volumeCondition: await conditionOf(driver, volume) }
    },
    nodeExpandVolume: async ({ volumeId, volumePath }) => {
      const { accessType, capacityBytes } = volumeAt(driver, volumeId, volumePath)
      const device = accessType === 'block' ? await loopOf(driver, volumeId) : undefined
      if (device !== undefined) await check(driver.exec, 'losetup', ['-c', device])
      return { capacityBytes }
    },
  }
}

/** @throws CsiError NOT_FOUND, INVALID_ARGUMENT */
function checkedVolume({ file }: OnNode, id: string, path: string, capability: VolumeCapability): StoredVolume {
  const volume = volumeOf(file.state, id)
  if (!isAbsolute(path)) throw new CsiError('INVALID_ARGUMENT', 'the path must be absolute')
  if (accessTypeOf([capability]) !== volume.accessType) throw new CsiError('INVALID_ARGUMENT', `the volume is a ${volume.accessType} volume`)
  const unknown = capability.mount?.mountFlags?.find((flag) => !mountFlags.has(flag))
  if (unknown !== undefined) throw new CsiError('INVALID_ARGUMENT', `mount flag ${JSON.stringify(unknown)} is not supported`)
  const group = capability.mount?.volumeMountGroup ?? ''
  if (group !== '' && !/^\d{1,10}$/.test(group)) throw new CsiError('INVALID_ARGUMENT', 'volumeMountGroup must be a number')
  return volume
}

/** @throws CsiError NOT_FOUND when the volume is not at the path */
function volumeAt({ file }: OnNode, id: string, path: string): StoredVolume {
  const volume = volumeOf(file.state, id)
  if (volume.stagingPath !== path && !volume.published.some(([target]) => target === path)) throw new CsiError('NOT_FOUND', 'the volume is not at this path')
  return volume
}

async function stageDirectory(driver: OnNode, id: string, path: string, { mount }: VolumeCapability): Promise<void> {
  const { file, exec, mounter } = driver
  const data = dataOf(file.contentOf(id))
  const group = mount?.volumeMountGroup ?? ''
  if (group !== '') {
    await check(exec, 'chgrp', ['-R', '-h', '--', group, data])
    await check(exec, 'chmod', ['-R', 'g+rwX', '--', data])
    await check(exec, 'chmod', ['g+s', '--', data])
  }
  await makeDirectory(path)
  if (!(await isMountPoint(driver, path))) await mounter.mount({ source: data, target: path, options: ['bind'] })
}

async function publish(driver: OnNode, request: NodePublishVolumeRequest): Promise<void> {
  const { volumeId, targetPath, stagingTargetPath, volumeCapability, readonly } = request
  const volume = checkedVolume(driver, volumeId, targetPath, volumeCapability)
  if (volume.stagingPath === undefined || volume.stagingPath !== stagingTargetPath)
    throw new CsiError('FAILED_PRECONDITION', 'the volume is not staged at stagingTargetPath')
  const publication: Publication = { readonly, mode: volumeCapability.accessMode?.mode ?? 'UNKNOWN' }
  const isNew = !isPublishedAs(volume, targetPath, publication)
  if (isNew) await changeVolume(driver.file, volumeId, (one) => ({ ...one, published: [...one.published, [targetPath, publication]] }))
  if (await isMountPoint(driver, targetPath)) return
  const source = volume.accessType === 'block' ? await attachLoop(driver, volumeId) : dataOf(driver.file.contentOf(volumeId))
  await (volume.accessType === 'block' ? writeFile(targetPath, '', { flag: 'a' }) : makeDirectory(targetPath))
  const flags = new Set(['bind', ...(readonly ? ['ro'] : []), ...(volumeCapability.mount?.mountFlags ?? [])])
  await driver.mounter.mount({ source, target: targetPath, options: [...flags] })
}

/** False: nothing is published there. @throws CsiError when the volume cannot be published in this way */
function isPublishedAs({ published }: StoredVolume, path: string, { readonly, mode }: Publication): boolean {
  const here = published.find(([target]) => target === path)?.[1]
  if (here && (here.readonly !== readonly || here.mode !== mode)) throw new CsiError('ALREADY_EXISTS', 'the volume is published there in another way')
  const isAlone = [mode, ...published.map(([, other]) => other.mode)].includes('SINGLE_NODE_SINGLE_WRITER')
  if (!here && published.length > 0 && isAlone) throw new CsiError('FAILED_PRECONDITION', 'the volume is published at another path')
  return here !== undefined
}

async function isMountPoint({ mounter }: OnNode, path: string): Promise<boolean> {
  return (await mounter.list()).some(({ mountPoint }) => mountPoint === path)
}

/** A directory with content that is no mount stays, and the call fails. */
async function removeTarget({ accessType }: StoredVolume, path: string): Promise<void> {
  if (accessType === 'block') return rm(path, { force: true })
  await rmdir(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
}

/** The device over the volume's file; undefined: there is none. */
async function loopOf({ exec, file }: OnNode, id: string): Promise<string | undefined> {
  const text = await check(exec, 'losetup', ['-n', '-O', 'NAME', '-j', diskOf(file.contentOf(id))])
  return text.trim().split('\n')[0] || undefined
}

async function attachLoop(driver: OnNode, id: string): Promise<string> {
  const old = await loopOf(driver, id)
  return old ?? (await check(driver.exec, 'losetup', ['-f', '--show', diskOf(driver.file.contentOf(id))])).trim()
}

async function detachLoop(driver: OnNode, id: string): Promise<void> {
  const device = await loopOf(driver, id)
  if (device !== undefined) await check(driver.exec, 'losetup', ['-d', device])
}

async function usageOf({ file }: OnNode, { id, accessType, capacityBytes }: StoredVolume): Promise<VolumeUsage[]> {
  const content = file.contentOf(id)
  if (accessType === 'block') {
    const { blocks } = await stat(diskOf(content))
    return [{ unit: 'BYTES', total: capacityBytes, used: blocks * 512 }]
  }
  const [{ bytes, inodes }, { files, ffree }] = await Promise.all([directoryUsage(dataOf(content)), statfs(dataOf(content))])
  return [
    { unit: 'BYTES', total: capacityBytes, used: bytes, available: Math.max(0, capacityBytes - bytes) },
    { unit: 'INODES', total: files, used: inodes, available: ffree },
  ]
}
