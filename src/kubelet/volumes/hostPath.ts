/** A path of the node (L3), after checking what it is. Upstream: pkg/volume/hostpath (v1.36). */
import type { Stats } from 'node:fs'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import type { VolumePlugin } from './volumePlugin.ts'

const checks: Readonly<Record<string, { what: string; is: (stats: Stats) => boolean }>> = {
  Directory: { what: 'a directory', is: (stats) => stats.isDirectory() },
  DirectoryOrCreate: { what: 'a directory', is: (stats) => stats.isDirectory() },
  File: { what: 'a file', is: (stats) => stats.isFile() },
  FileOrCreate: { what: 'a file', is: (stats) => stats.isFile() },
  Socket: { what: 'a socket file', is: (stats) => stats.isSocket() },
  CharDevice: { what: 'a character device', is: (stats) => stats.isCharacterDevice() },
  BlockDevice: { what: 'a block device', is: (stats) => stats.isBlockDevice() },
}

/** Creates what may be created and refuses what is of another type. @throws Error with upstream's text. */
export async function checkHostPath(localPath: string, path: string, type: string): Promise<void> {
  const check = checks[type]
  if (!check) return
  let stats = await stat(localPath).catch(() => undefined)
  if (!stats && type === 'DirectoryOrCreate') await mkdir(localPath, { recursive: true, mode: 0o755 })
  if (!stats && type === 'FileOrCreate') await writeFile(localPath, '', { mode: 0o644 })
  stats ??= await stat(localPath).catch(() => undefined)
  if (!stats || !check.is(stats)) throw new Error(`hostPath type check failed: ${path} is not ${check.what}`)
}

export const hostPathVolume: VolumePlugin = {
  name: 'kubernetes.io/host-path',
  refreshes: false,
  supports: (volume) => volume.hostPath !== undefined,
  setUp: async ({ host }, { volume }) => {
    const path = volume.hostPath?.path ?? ''
    await checkHostPath(host.path(path), path, volume.hostPath?.type ?? '')
    return path
  },
}
