/** Warnings about files of a volume that hide each other (L1). Upstream: warningsForOverlappingVirtualPaths in pkg/api/pod/warnings.go (v1.36). */
import type { Volume, VolumeProjection } from '#api/gen/types/core.v1'

export function overlappingPathWarnings(volumes: readonly Volume[] | undefined): string[] {
  return (volumes ?? []).flatMap((volume) => {
    const name = `volume ${JSON.stringify(volume.name)}`
    const { configMap, secret, downwardAPI, projected } = volume
    return [
      ...overlaps(pathsOf(configMap?.items), `${name} (ConfigMap ${JSON.stringify(configMap?.name)}): overlapping paths`),
      ...overlaps(pathsOf(secret?.items), `${name} (Secret ${JSON.stringify(secret?.secretName)}): overlapping paths`),
      ...overlaps(pathsOf(downwardAPI?.items), `${name} (DownwardAPI): overlapping paths`),
      ...projectedWarnings(projected?.sources ?? [], name),
    ]
  })
}

const pathsOf = (items: readonly { path: string }[] | undefined): string[] => (items ?? []).map(({ path }) => path)

/** Every source among its own files, and with those of the sources before it. */
function projectedWarnings(sources: readonly VolumeProjection[], name: string): string[] {
  const before = new Set<string>()
  return sources.flatMap((source) => {
    const found = sourcePaths(source)
    if (!found) return Object.keys(source).length === 0 ? [`${name} (Projected) has no sources provided`] : []
    const message = `${name} (Projected ${found.what}): overlapping paths`
    const own = overlaps(found.paths, message)
    const all = overlaps([...new Set(found.paths), ...before].sort(), message)
    for (const path of found.paths) before.add(path)
    return [...own, ...all.filter((warning) => !own.includes(warning))]
  })
}

function sourcePaths(source: VolumeProjection): { readonly what: string; readonly paths: string[] } | undefined {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle } = source
  if (configMap?.items) return { what: `ConfigMap ${JSON.stringify(configMap.name)}`, paths: pathsOf(configMap.items) }
  if (secret?.items) return { what: `Secret ${JSON.stringify(secret.name)}`, paths: pathsOf(secret.items) }
  if (downwardAPI?.items) return { what: 'DownwardAPI', paths: pathsOf(downwardAPI.items) }
  if (serviceAccountToken) return { what: 'ServiceAccountToken', paths: [serviceAccountToken.path] }
  const bundle = clusterTrustBundle && (clusterTrustBundle.name ?? clusterTrustBundle.signerName)
  return clusterTrustBundle ? { what: `ClusterTrustBundle ${JSON.stringify(bundle)}`, paths: [clusterTrustBundle.path] } : undefined
}

function overlaps(paths: readonly string[], message: string): string[] {
  const seen: string[] = []
  return paths.flatMap((path) => {
    const own = path.replace(/\/+$/, '')
    const other = seen.find((item) => item !== '' && own !== '' && (item === own || `${item}/`.startsWith(`${own}/`) || `${own}/`.startsWith(`${item}/`)))
    seen.push(own)
    return other === undefined ? [] : [`${message}: ${JSON.stringify(own)} with ${JSON.stringify(other)}`]
  })
}
