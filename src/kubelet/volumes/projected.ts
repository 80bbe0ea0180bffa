/** Several sources in one directory (L3), service account tokens among them, in memory. Upstream: pkg/volume/projected (v1.36). */
import type { VolumeProjection } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { FrozenPod } from '../core/containers.ts'
import { optionally } from '../core/optionally.ts'
import type { FileProjection } from './atomicWriter.ts'
import { writeConfiguration } from './configurationVolume.ts'
import { configMapData, defaultFileMode, downwardApiFiles, secretData, selectItems, VolumeFiles } from './payloads.ts'
import { mountTmpfs, unmountIfMounted } from './podMounts.ts'
import { directoryStatistics, fsGroupOf, type VolumeContext, type VolumePlugin } from './volumePlugin.ts'

const defaultTokenSeconds = 3600
/** Each may bring a megabyte. */
const sourcesAtOnce = 16

interface SourcePlace {
  readonly volumeName: string
  /** Among the sources of its volume. */
  readonly sourceIndex: number
  readonly mode: number
}

async function projectedFiles(
  { context, tokens, certificates }: VolumeContext,
  pod: FrozenPod,
  source: Frozen<VolumeProjection>,
  { volumeName, sourceIndex, mode }: SourcePlace,
): Promise<Map<string, FileProjection>> {
  const namespace = pod.metadata.namespace ?? ''
  if (source.configMap) {
    const { name = '', items, optional } = source.configMap
    return selectItems('configmap', configMapData(await optionally(optional, context.objects.configMap(namespace, name))), items, mode, optional ?? false)
  }
  if (source.secret) {
    const { name = '', items, optional } = source.secret
    return selectItems('secret', secretData(await optionally(optional, context.objects.secret(namespace, name))), items, mode, optional ?? false)
  }
  if (source.downwardAPI) return downwardApiFiles(context, pod, source.downwardAPI.items ?? [], mode)
  if (source.serviceAccountToken) {
    const { audience, expirationSeconds = defaultTokenSeconds, path } = source.serviceAccountToken
    const { token } = await tokens.token(pod, audience, expirationSeconds)
    return new Map([[path, { data: Buffer.from(token), ...tokenOwner(pod, mode) }]])
  }
  if (source.clusterTrustBundle) {
    // Loaded by the pods that have such a source.
    const { projectedTrustAnchors } = await import('./trustBundles.ts')
    const anchors = await projectedTrustAnchors(context, source.clusterTrustBundle)
    return new Map([[source.clusterTrustBundle.path, { data: Buffer.from(anchors), ...tokenOwner(pod, mode) }]])
  }
  if (source.podCertificate) return (await certificates()).files(pod, { volumeName, sourceIndex }, tokenOwner(pod, mode))
  throw new Error(`projected volume source ${Object.keys(source).join(', ')} is not supported`)
}

/**
 * Only the pod may read it: the user that all of its containers share, and its group, which gets its permission with the volume's ownership. Without
 * either the mode counts. Upstream: pkg/volume/projected collectData, pkg/volume/util FsUserFrom.
 */
export function tokenOwner(pod: FrozenPod, mode: number): { mode: number; uid?: number } {
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec
  const all = [...initContainers, ...containers, ...ephemeralContainers]
  const users = new Set(all.map(({ securityContext }) => securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser))
  const [user] = users
  if (users.size === 1 && user !== undefined) return { mode: 0o600, uid: user }
  return { mode: fsGroupOf(pod) === undefined ? mode : 0o600 }
}

export const projectedVolume: VolumePlugin = {
  name: 'kubernetes.io/projected',
  requiresRemount: true,
  readOnly: true,
  supports: ({ volume }) => volume?.projected !== undefined,
  setUp: async (volumes, request) => {
    const { pod, spec, directory, refresh } = request
    const mode = spec.volume?.projected?.defaultMode ?? defaultFileMode
    const collected = new VolumeFiles()
    const sources = spec.volume?.projected?.sources ?? []
    for (let done = 0; done < sources.length; done += sourcesAtOnce) {
      const some = sources.slice(done, done + sourcesAtOnce)
      const parts = await Promise.all(some.map((source, i) => projectedFiles(volumes, pod, source, { volumeName: spec.name, sourceIndex: done + i, mode })))
      for (const part of parts) for (const [path, file] of part) collected.add(path, file)
    }
    if (!refresh) await mountTmpfs(volumes.host, directory)
    await writeConfiguration(volumes, request, collected.files)
    return directory
  },
  tearDown: ({ host }, { directory }) => unmountIfMounted(host, directory),
  statistics: directoryStatistics,
}
