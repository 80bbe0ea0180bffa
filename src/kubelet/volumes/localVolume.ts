/**
 * PersistentVolumes on the node itself (L3): a directory that is bind mounted below the pod's, a block device that is formatted and
 * mounted first, or a block device that containers get as it is. Upstream: pkg/volume/local (v1.36).
 */
import { lstat, rm, stat, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { bareMap, ownValue } from '#base/bareMap'
import { makeDirectory } from '#host/files'
import type { KubeletHost } from '../core/host.ts'
import { refuseBacksteps } from './hostPath.ts'
import { isOwnLocalPath, makeLocalPath } from './localPath.ts'
import { setVolumeOwnership, watchOwnership } from './ownership.ts'
import { isMountPoint, mountUnlessMounted, unmountIfMounted } from './podMounts.ts'
import { fsGroupOf, type VolumePlugin, type VolumeRequest, type VolumeSpec, type VolumeStaging } from './volumePlugin.ts'

/** Name of the plugin. */
export const localVolumePlugin = 'kubernetes.io/local-volume'

function localPath({ spec }: VolumeRequest): string {
  const { path = '' } = spec.persistentVolume?.spec.local ?? {}
  if (path === '') throw new Error(`LocalVolume volume "${spec.name}" path is empty`)
  refuseBacksteps(path, `invalid path: ${path}`)
  return path
}

/** @throws Error for a path that is neither a block device nor a directory */
async function isDevice(host: KubeletHost, path: string): Promise<boolean> {
  const stats = await stat(host.path(path))
  if (!stats.isBlockDevice() && !stats.isDirectory()) throw new Error('only directory and block device are supported')
  return stats.isBlockDevice()
}

/** What the PersistentVolume and the pod ask for. Upstream: volume/util/util.go MountOptionFromSpec. */
function mountOptions({ persistentVolume, readOnly }: VolumeSpec): string[] {
  const annotated = ownValue(persistentVolume?.metadata.annotations, 'volume.beta.kubernetes.io/mount-options')
  const options = annotated?.split(',') ?? persistentVolume?.spec.mountOptions ?? []
  return [...new Set([...options, ...(readOnly ? ['ro'] : [])])].filter((option) => option !== '' && option !== 'bind' && option !== 'remount').sort()
}

const isBlockVolume = ({ spec }: VolumeRequest) => spec.persistentVolume?.spec.volumeMode === 'Block'

/** Block devices with a filesystem are staged; directories and block volumes need no staging. */
const staging: VolumeStaging = {
  path: ({ context }, spec) => `${context.config.rootDirectory}/plugins/${localVolumePlugin}/mounts/${spec.name}`,
  mountDevice: async ({ context, host }, request) => {
    const path = localPath(request)
    const { rootDirectory } = context.config
    if (isOwnLocalPath(rootDirectory, request.spec.persistentVolume)) await makeLocalPath({ host, rootDirectory }, request.spec.name)
    if (isBlockVolume(request) || !(await isDevice(host, path))) return
    await mountDevice(host, path, request.stagingPath ?? '', request.spec.persistentVolume?.spec.local?.fsType ?? 'ext4')
  },
  unmountDevice: ({ host }, _spec, stagingPath) => unmountIfMounted(host, stagingPath),
}

export const localVolume: VolumePlugin = {
  name: localVolumePlugin,
  supports: ({ persistentVolume }) => persistentVolume?.spec.local !== undefined,
  staging,
  setUp: async ({ context, host }, request) => {
    const { pod, spec, directory, stagingPath = '' } = request
    const path = localPath(request)
    const source = (await isDevice(host, path)) ? stagingPath : path
    const isMounted = await isMountPoint(host, directory)
    if (!isMounted) {
      await mountUnlessMounted(host, { source, target: directory, options: ['bind'] })
      // A bind mount gets its options, such as read-only, in a second step.
      const options = mountOptions(spec)
      if (options.length > 0) await remount(host, source, directory, options)
    }
    if (spec.readOnly) return directory
    // After a restart of the kubelet, the group of the root shows whether the earlier walk was finished: the walk changes the root last.
    const policy = isMounted ? 'OnRootMismatch' : pod.spec.securityContext?.fsGroupChangePolicy
    const watch = watchOwnership(context, pod, directory)
    try {
      await setVolumeOwnership(host.path(directory), { fsGroup: fsGroupOf(pod), policy, onFile: watch.seen })
    } finally {
      watch.stop()
    }
    return directory
  },
  mapDevice: async ({ host }, request) => {
    const path = localPath(request)
    if (!(await stat(host.path(path))).isBlockDevice()) throw new Error(`local block volume path ${path} is not a block device`)
    // The link records for a later kubelet which device the pod had.
    const link = host.path(request.directory)
    await makeDirectory(dirname(link), 0o750)
    if (!(await lstat(link).catch(() => undefined))) await symlink(path, link)
    return path
  },
  tearDown: async ({ host }, { directory }) => {
    const stats = await lstat(host.path(directory)).catch(() => undefined)
    if (stats?.isSymbolicLink()) await rm(host.path(directory))
    else await unmountIfMounted(host, directory)
  },
  expansion: {
    nodeExpand: async ({ host }, request, path) => {
      const device = localPath(request)
      if (!isBlockVolume(request) && (await isDevice(host, device))) await growFilesystem(host, device, path)
    },
  },
  statistics: (_volumes, { block, path }, measures) => (block ? measures.device(path) : measures.filesystem(path)),
}

/** Takes the mount away when its options are refused: the next attempt would find it there, and leave it without them. */
async function remount({ mounter }: KubeletHost, source: string, target: string, options: readonly string[]): Promise<void> {
  try {
    await mounter.mount({ source, target, options: ['remount', 'bind', ...options] })
  } catch (error) {
    await mounter.unmount(target)
    throw error
  }
}

/** Formats the device unless it has a filesystem, and mounts it where all pods of the node share it. */
async function mountDevice(host: KubeletHost, device: string, target: string, filesystem: string): Promise<void> {
  // It becomes a part of a program's name, and of mount's arguments.
  if (!/^[A-Za-z0-9][A-Za-z0-9._]*$/.test(filesystem)) throw new Error(`"${filesystem}" is no name of a filesystem`)
  if (await isMountPoint(host, target)) return
  const { code, found } = await probe(host, device)
  // blkid's 2: nothing found; anything else that is no filesystem must not be written over.
  if (code === 2) await format(host, device, filesystem)
  else if (found === undefined) throw new Error(`device ${device} holds no filesystem that is known, and is not empty: not formatting it`)
  else if (found !== filesystem) throw new Error(`failed to mount the volume as "${filesystem}", it already contains ${found}. Mount error: wrong fs type`)
  await mountUnlessMounted(host, { source: device, target, filesystem, options: ['defaults'] })
}

/** @returns found: the type of the filesystem on the device; code: blkid's exit code, 2 for an empty device */
async function probe(host: KubeletHost, device: string): Promise<{ code: number; found: string | undefined }> {
  const { code, stdout } = await host.exec.run('blkid', ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device])
  return { code, found: /^TYPE=(.*)$/m.exec(stdout)?.[1] }
}

/** Grows a mounted filesystem to the size of its device. */
async function growFilesystem(host: KubeletHost, device: string, mountPoint: string): Promise<void> {
  const { found } = await probe(host, device)
  const grow: Readonly<Record<string, readonly [string, ...string[]]>> = bareMap({
    ext3: ['resize2fs', device],
    ext4: ['resize2fs', device],
    xfs: ['xfs_growfs', '-d', mountPoint],
    btrfs: ['btrfs', 'filesystem', 'resize', 'max', mountPoint],
  })
  const command = grow[found ?? '']
  if (!command) throw new Error(`resize of format ${found ?? ''} is not supported for device ${device} mounted at ${mountPoint}`)
  const [program, ...args] = command
  const { code, stderr } = await host.exec.run(program, args)
  if (code !== 0) throw new Error(`resize of device ${device} failed: ${stderr.trim()}`)
}

async function format(host: KubeletHost, device: string, filesystem: string): Promise<void> {
  // Upstream's arguments: ext without reserved blocks.
  const args = filesystem === 'ext3' || filesystem === 'ext4' ? ['-F', '-m0', device] : filesystem === 'xfs' ? ['-f', device] : [device]
  const { code, stderr } = await host.exec.run(`mkfs.${filesystem}`, args)
  if (code !== 0) throw new Error(`failed to format the disk ${device} as ${filesystem}: ${stderr.trim()}`)
}
