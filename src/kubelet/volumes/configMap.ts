/** ConfigMaps as files (L3). Upstream: pkg/volume/configmap (v1.36). */
import { optionally } from '../core/optionally.ts'
import { writeConfiguration } from './configurationVolume.ts'
import { configMapData, defaultFileMode, selectItems } from './payloads.ts'
import { directoryStatistics, type VolumePlugin } from './volumePlugin.ts'

export const configMapVolume: VolumePlugin = {
  name: 'kubernetes.io/configmap',
  requiresRemount: true,
  readOnly: true,
  supports: ({ volume }) => volume?.configMap !== undefined,
  setUp: async (volumes, request) => {
    const { pod, spec, directory } = request
    const source = spec.volume?.configMap
    const configMap = await optionally(source?.optional, volumes.context.objects.configMap(pod.metadata.namespace ?? '', source?.name ?? ''))
    const files = selectItems('configmap', configMapData(configMap), source?.items, source?.defaultMode ?? defaultFileMode, source?.optional ?? false)
    await writeConfiguration(volumes, request, files)
    return directory
  },
  statistics: directoryStatistics,
  isLocalEphemeral: () => true,
}
