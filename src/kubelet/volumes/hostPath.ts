/** A path of the node (L3), after checking what it is: the pod's own or a PersistentVolume's. Upstream: pkg/volume/hostpath (v1.36). */
import type { Stats } from 'node:fs'
import { stat, writeFile } from 'node:fs/promises'
import { bareMap } from '#base/bareMap'
import { isMissing, makeDirectory } from '#host/files'
import type { VolumePlugin } from './volumePlugin.ts'

const descriptions: Readonly<Record<string, string>> = bareMap({
  Directory: 'directory',
  File: 'file',
  Socket: 'socket file',
  CharDevice: 'character device',
  BlockDevice: 'block device',
})

/** What the file is, in the API's words. */
function fileType(stats: Stats): string | undefined {
  if (stats.isDirectory()) return 'Directory'
  if (stats.isFile()) return 'File'
  if (stats.isSocket()) return 'Socket'
  if (stats.isCharacterDevice()) return 'CharDevice'
  return stats.isBlockDevice() ? 'BlockDevice' : undefined
}

/** @throws Error with upstream's text when the path climbs. */
export function refuseBacksteps(path: string, complaint: string): void {
  if (path.split('/').includes('..')) throw new Error(`${complaint}: must not contain '..'`)
}

/** Creates what may be created and refuses what is of another type. @throws Error with upstream's text. */
export async function checkHostPath(localPath: string, path: string, type: string): Promise<void> {
  refuseBacksteps(path, `invalid HostPath \`${path}\``)
  if (type === '') return
  const wanted = type.replace(/OrCreate$/, '')
  const description = descriptions[wanted]
  if (description === undefined) throw new Error(`${type} is an invalid volume type`)
  const stats = await stat(localPath).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (!stats && type === 'DirectoryOrCreate') return void (await makeDirectory(localPath, 0o755))
  if (!stats && type === 'FileOrCreate') return writeFile(localPath, '', { mode: 0o644 })
  if (!stats) throw new Error(`hostPath ${path} doesn't exist`)
  const found = fileType(stats)
  const complaint = `${path} is not a ${description}`
  if (found === undefined) {
    throw new Error(
      `hostPath type check failed, ${complaint}, unable to determine its type: only recognise file, directory, socket, block device and character device`,
    )
  }
  if (found !== wanted) throw new Error(`hostPath type check failed: ${complaint}, it's a ${found}`)
}

export const hostPathVolume: VolumePlugin = {
  name: 'kubernetes.io/host-path',
  supports: ({ volume, persistentVolume }) => volume?.hostPath !== undefined || persistentVolume?.spec.hostPath !== undefined,
  setUp: async ({ host }, { spec }) => {
    const { path = '', type = '' } = spec.volume?.hostPath ?? spec.persistentVolume?.spec.hostPath ?? {}
    await checkHostPath(host.path(path), path, type)
    return path
  },
}
