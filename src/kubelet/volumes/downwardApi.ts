/** Facts about the pod as files (L3). Upstream: pkg/volume/downwardapi (v1.36). */
import { writeConfiguration } from './configurationVolume.ts'
import { defaultFileMode, downwardApiFiles } from './payloads.ts'
import { directoryStatistics, type VolumePlugin } from './volumePlugin.ts'

export const downwardApiVolume: VolumePlugin = {
  name: 'kubernetes.io/downward-api',
  requiresRemount: true,
  readOnly: true,
  supports: ({ volume }) => volume?.downwardAPI !== undefined,
  setUp: async (volumes, request) => {
    const { pod, spec, directory } = request
    const source = spec.volume?.downwardAPI
    const files = downwardApiFiles(volumes.context, pod, source?.items ?? [], source?.defaultMode ?? defaultFileMode)
    await writeConfiguration(volumes, request, files)
    return directory
  },
  statistics: directoryStatistics,
}
