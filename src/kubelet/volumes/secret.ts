/** Secrets as files in memory (L3): on a tmpfs, so that they never reach a disk. Upstream: pkg/volume/secret (v1.36). */
import { writeAtomically } from './atomicWriter.ts'
import { defaultFileMode, optionally, secretData, selectItems } from './payloads.ts'
import { mountTmpfs, unmountIfMounted } from './tmpfs.ts'
import { fsGroupOf, type VolumePlugin } from './volumePlugin.ts'

export const secretVolume: VolumePlugin = {
  name: 'kubernetes.io/secret',
  refreshes: true,
  supports: (volume) => volume.secret !== undefined,
  setUp: async ({ context, host }, { pod, volume, directory }) => {
    const source = volume.secret
    const secret = await optionally(source?.optional, context.objects.secret(pod.metadata.namespace ?? '', source?.secretName ?? ''))
    const files = selectItems(secretData(secret), source?.items, source?.defaultMode ?? defaultFileMode, source?.optional ?? false)
    await mountTmpfs(host, directory, [])
    await writeAtomically(host.path(directory), files, fsGroupOf(pod))
    return directory
  },
  tearDown: ({ host }, directory) => unmountIfMounted(host, directory),
}
