/** Secrets as files in memory (L3): on a tmpfs, so that they never reach a disk. Upstream: pkg/volume/secret (v1.36). */
import { optionally } from '../core/optionally.ts'
import { writeConfiguration } from './configurationVolume.ts'
import { defaultFileMode, secretData, selectItems } from './payloads.ts'
import { mountTmpfs, unmountIfMounted } from './podMounts.ts'
import { directoryStatistics, type VolumePlugin } from './volumePlugin.ts'

export const secretVolume: VolumePlugin = {
  name: 'kubernetes.io/secret',
  requiresRemount: true,
  readOnly: true,
  supports: ({ volume }) => volume?.secret !== undefined,
  setUp: async (volumes, request) => {
    const { pod, spec, directory, refresh } = request
    const source = spec.volume?.secret
    const secret = await optionally(source?.optional, volumes.context.objects.secret(pod.metadata.namespace ?? '', source?.secretName ?? ''))
    const files = selectItems('secret', secretData(secret), source?.items, source?.defaultMode ?? defaultFileMode, source?.optional ?? false)
    if (!refresh) await mountTmpfs(volumes.host, directory)
    await writeConfiguration(volumes, request, files)
    return directory
  },
  tearDown: ({ host }, { directory }) => unmountIfMounted(host, directory),
  statistics: directoryStatistics,
}
