/** Warnings about files of a volume that hide each other (L1). Upstream: warningsForOverlappingVirtualPaths in pkg/api/pod/warnings.go (v1.36). */
import type { Volume, VolumeProjection } from '#api/gen/types/core.v1'

export function overlappingPathWarnings(volumes: readonly Volume[] | undefined): string[] {
  return (volumes ?? []).flatMap(({ name, configMap, secret, downwardAPI, projected }) => {
    if (configMap?.items) return overlaps(pathsOf(configMap.items), () => `ConfigMap ${JSON.stringify(configMap.name)}`, name)
    if (secret?.items) return overlaps(pathsOf(secret.items), () => `Secret ${JSON.stringify(secret.secretName)}`, name)
    if (downwardAPI?.items) return overlaps(pathsOf(downwardAPI.items), () => 'DownwardAPI', name)
    return projected?.sources ? projectedWarnings(projected.sources, name) : []
  })
}

const pathsOf = (items: readonly { path: string }[]): string[] => items.map(({ path }) => path)

/** Every source among its own files, and with those of the sources before it. */
function projectedWarnings(sources: readonly VolumeProjection[], volume: string): string[] {
  const before = new Set<string>()
  return sources.flatMap((source) => {
    const found = sourcePaths(source)
    if (!found) return Object.keys(source).length === 0 ? [`volume ${JSON.stringify(volume)} (Projected) has no sources provided`] : []
    const what = () => `Projected ${found.what()}`
    const own = overlaps(found.paths, what, volume)
    const all = before.size + found.paths.length < 2 ? own : overlaps([...new Set(found.paths), ...before].sort(), what, volume)
    for (const path of found.paths) before.add(path)
    return all.length === 0 ? own : [...own, ...all.filter((warning) => !own.includes(warning))]
  })
}

interface SourcePaths {
  readonly what: () => string
  readonly paths: string[]
}

function sourcePaths({ configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle }: VolumeProjection): SourcePaths | undefined {
  if (configMap?.items) return { what: () => `ConfigMap ${JSON.stringify(configMap.name)}`, paths: pathsOf(configMap.items) }
  if (secret?.items) return { what: () => `Secret ${JSON.stringify(secret.name)}`, paths: pathsOf(secret.items) }
  if (downwardAPI?.items) return { what: () => 'DownwardAPI', paths: pathsOf(downwardAPI.items) }
  if (serviceAccountToken) return { what: () => 'ServiceAccountToken', paths: [serviceAccountToken.path] }
  if (!clusterTrustBundle) return undefined
  const { name, signerName, path } = clusterTrustBundle
  return { what: () => `ClusterTrustBundle ${JSON.stringify(name ?? signerName)}`, paths: [path] }
}

/** @param what whose paths they are: asked for only when some overlap */
function overlaps(paths: readonly string[], what: () => string, volume: string): string[] {
  const found: string[] = []
  const seen: string[] = []
  for (const path of paths) {
    const own = path.endsWith('/') ? path.replace(/\/+$/, '') : path
    const other = own === '' ? undefined : seen.find((item) => item === own || isWithin(item, own) || isWithin(own, item))
    if (other !== undefined) found.push(`volume ${JSON.stringify(volume)} (${what()}): overlapping paths: ${JSON.stringify(own)} with ${JSON.stringify(other)}`)
    if (own !== '') seen.push(own)
  }
  return found
}

function isWithin(path: string, folder: string): boolean {
  return path.length > folder.length && path[folder.length] === '/' && path.startsWith(folder)
}
