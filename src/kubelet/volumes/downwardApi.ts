/** Facts about the pod as files (L3). Upstream: pkg/volume/downwardapi (v1.36). */
import { writeAtomically } from './atomicWriter.ts'
import { defaultFileMode, downwardApiFiles } from './payloads.ts'
import { fsGroupOf, type VolumePlugin } from './volumePlugin.ts'

export const downwardApiVolume: VolumePlugin = {
  name: 'kubernetes.io/downward-api',
  refreshes: true,
  supports: (volume) => volume.downwardAPI !== undefined,
  setUp: async ({ context, host }, { pod, volume, directory }) => {
    const source = volume.downwardAPI
    const files = downwardApiFiles(context, pod, source?.items ?? [], source?.defaultMode ?? defaultFileMode)
    await writeAtomically(host.path(directory), files, fsGroupOf(pod))
    return directory
  },
}
