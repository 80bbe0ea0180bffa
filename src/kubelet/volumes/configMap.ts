/** ConfigMaps as files (L3). Upstream: pkg/volume/configmap (v1.36). */
import { writeAtomically } from './atomicWriter.ts'
import { configMapData, defaultFileMode, optionally, selectItems } from './payloads.ts'
import { fsGroupOf, type VolumePlugin } from './volumePlugin.ts'

export const configMapVolume: VolumePlugin = {
  name: 'kubernetes.io/configmap',
  refreshes: true,
  supports: (volume) => volume.configMap !== undefined,
  setUp: async ({ context, host }, { pod, volume, directory }) => {
    const source = volume.configMap
    const configMap = await optionally(source?.optional, context.objects.configMap(pod.metadata.namespace ?? '', source?.name ?? ''))
    const files = selectItems(configMapData(configMap), source?.items, source?.defaultMode ?? defaultFileMode, source?.optional ?? false)
    await writeAtomically(host.path(directory), files, fsGroupOf(pod))
    return directory
  },
}
