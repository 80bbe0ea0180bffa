/**
 * PersistentVolumes on the node itself (L3): a directory that is bind mounted below the pod's, a block device that is formatted and
 * mounted first, or a block device that containers get as it is. Upstream: pkg/volume/local (v1.36).
 */
import { lstat, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { makeDirectory } from '#host/files'
import type { KubeletHost } from '../core/host.ts'
import { refuseBacksteps } from './hostPath.ts'
import { setVolumeOwnership, watchOwnership } from './ownership.ts'
import { isMountPoint, mountUnlessMounted, unmountIfMounted } from './podMounts.ts'
import { fsGroupOf, type VolumeContext, type VolumePlugin, type VolumeRequest } from './volumePlugin.ts'

const name = 'kubernetes.io/local-volume'
const escapedName = name.replace('/', '~')

function localPath({ spec }: VolumeRequest): string {
  const { path = '' } = spec.persistentVolume?.spec.local ?? {}
  if (path === '') throw new Error(`LocalVolume volume "${spec.name}" path is empty`)
  refuseBacksteps(path, `invalid path: ${path}`)
  return path
}

export const localVolume: VolumePlugin = {
  name,
  refreshes: false,
  supports: ({ persistentVolume }) => persistentVolume?.spec.local !== undefined,
  setUp: async (volumes, request) => {
    const { host } = volumes
    const { pod, spec, directory } = request
    const path = localPath(request)
    const stats = await stat(host.path(path))
    if (!stats.isBlockDevice() && !stats.isDirectory()) throw new Error('only directory and block device are supported')
    const mounted = await volumes.exclusive(spec.name, async () => {
      if (await isMountPoint(host, directory)) return false
      const filesystem = spec.persistentVolume?.spec.local?.fsType ?? 'ext4'
      const source = stats.isBlockDevice() ? await mountDevice(host, path, sharedMount(volumes, spec.name), filesystem) : path
      await mountUnlessMounted(host, { source, target: directory, options: ['bind'] })
      // A bind mount becomes read-only in a second step.
      if (spec.readOnly) await host.mounter.mount({ source, target: directory, options: ['remount', 'bind', 'ro'] })
      return true
    })
    // A kubelet that has started again need not walk a volume whose walk was finished: the root comes last.
    const policy = mounted ? pod.spec.securityContext?.fsGroupChangePolicy : 'OnRootMismatch'
    if (spec.readOnly) return directory
    const watch = watchOwnership(volumes.context, pod, directory)
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
    // The link is what tells after a restart which device the pod had.
    const link = host.path(request.directory)
    await makeDirectory(dirname(link), 0o750)
    if (!(await lstat(link).catch(() => undefined))) await symlink(path, link)
    return path
  },
  tearDown: async (volumes, directory) => {
    const { host } = volumes
    const volumeName = basename(directory)
    const stats = await lstat(host.path(directory)).catch(() => undefined)
    if (stats?.isSymbolicLink()) return rm(host.path(directory))
    await volumes.exclusive(volumeName, async () => {
      await unmountIfMounted(host, directory)
      const users = (await host.mounter.list()).filter(({ mountPoint }) => mountPoint.endsWith(`/volumes/${escapedName}/${volumeName}`))
      // The last pod that used the device gives it up.
      if (users.length === 0) await unmountIfMounted(host, sharedMount(volumes, volumeName))
    })
  },
}

/** Where all pods of the node share a device's filesystem. */
function sharedMount({ context }: VolumeContext, volumeName: string): string {
  return `${context.config.rootDirectory}/plugins/${name}/mounts/${volumeName}`
}

/** Formats the device unless it has a filesystem, and mounts it where all pods of the node share it. */
async function mountDevice(host: KubeletHost, device: string, target: string, filesystem: string): Promise<string> {
  // It becomes a part of a program's name, and of mount's arguments.
  if (!/^[A-Za-z0-9][A-Za-z0-9._]*$/.test(filesystem)) throw new Error(`"${filesystem}" is no name of a filesystem`)
  if (await isMountPoint(host, target)) return target
  const { code, stdout } = await host.exec.run('blkid', ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device])
  const found = /^TYPE=(.*)$/m.exec(stdout)?.[1]
  // blkid's 2: nothing found; anything else that is no filesystem must not be written over.
  if (code === 2) await format(host, device, filesystem)
  else if (found === undefined) throw new Error(`device ${device} holds no filesystem that is known, and is not empty: not formatting it`)
  else if (found !== filesystem) throw new Error(`failed to mount the volume as "${filesystem}", it already contains ${found}. Mount error: wrong fs type`)
  await mountUnlessMounted(host, { source: device, target, filesystem, options: ['defaults'] })
  return target
}

async function format(host: KubeletHost, device: string, filesystem: string): Promise<void> {
  // Upstream's arguments: ext without reserved blocks.
  const args = filesystem === 'ext3' || filesystem === 'ext4' ? ['-F', '-m0', device] : filesystem === 'xfs' ? ['-f', device] : [device]
  const { code, stderr } = await host.exec.run(`mkfs.${filesystem}`, args)
  if (code !== 0) throw new Error(`failed to format the disk ${device} as ${filesystem}: ${stderr.trim()}`)
}
