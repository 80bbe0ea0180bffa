/** Scratch space that lives as long as the pod (L3): a directory, or memory. Upstream: pkg/volume/emptydir (v1.36). */
import { chmod, chown, mkdir } from 'node:fs/promises'
import { wholeUnits } from '../pods/quantities.ts'
import { mountTmpfs, unmountIfMounted } from './tmpfs.ts'
import { fsGroupOf, type VolumePlugin } from './volumePlugin.ts'

export const emptyDirVolume: VolumePlugin = {
  name: 'kubernetes.io/empty-dir',
  refreshes: false,
  supports: (volume) => volume.emptyDir !== undefined,
  setUp: async ({ host }, { pod, volume, directory }) => {
    const medium = volume.emptyDir?.medium ?? ''
    const path = host.path(directory)
    if (medium.startsWith('HugePages')) throw new Error(`emptyDir medium ${medium} is not supported`)
    const size = wholeUnits(volume.emptyDir?.sizeLimit)
    if (medium === 'Memory') await mountTmpfs(host, directory, size > 0 ? [`size=${size}`] : [])
    else await mkdir(path, { recursive: true })
    const group = fsGroupOf(pod)
    if (group !== undefined) await chown(path, 0, group)
    // Any user of the pod may write; with a group of its own the set-group-id bit hands it on.
    await chmod(path, group === undefined ? 0o777 : 0o2777)
    return directory
  },
  tearDown: ({ host }, directory) => unmountIfMounted(host, directory),
}
