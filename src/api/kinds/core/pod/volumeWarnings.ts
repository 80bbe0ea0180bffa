/** Warnings about files of a volume that hide each other (L1). Upstream: warningsForOverlappingVirtualPaths in pkg/api/pod/warnings.go (v1.36). */
import type { Volume, VolumeProjection } from '#api/gen/types/core.v1'

/** So many warnings a pod may have of its volumes: of more than 4,096 characters a client gets only the beginning. */
const maxWarnings = 200
/** A name or path in a warning is cut after so many characters. */
const maxTextLength = 4096

export function overlappingPathWarnings(volumes: readonly Volume[] | undefined): string[] {
  const warnings: string[] = []
  for (const volume of volumes ?? []) {
    if (warnings.length >= maxWarnings) break
    warnings.push(...warningsOf(volume, maxWarnings - warnings.length))
  }
  return warnings
}

interface File {
  readonly path: string
  /** Which source of a projected volume it is of. */
  readonly source: string | undefined
}

function warningsOf({ name, configMap, secret, downwardAPI, projected }: Volume, limit: number): string[] {
  if (configMap?.items) return overlaps(filesOf(configMap.items), `volume ${quoted(name)} (ConfigMap ${quoted(configMap.name)})`, limit)
  if (secret?.items) return overlaps(filesOf(secret.items), `volume ${quoted(name)} (Secret ${quoted(secret.secretName)})`, limit)
  if (downwardAPI?.items) return overlaps(filesOf(downwardAPI.items), `volume ${quoted(name)} (DownwardAPI)`, limit)
  if (!projected?.sources) return []
  const volume = `volume ${quoted(name)} (Projected)`
  const hasEmptySource = projected.sources.some((source) => Object.keys(source).length === 0)
  const found = overlaps(projected.sources.flatMap(projectedFiles), volume, limit)
  return hasEmptySource ? [`${volume} has no sources provided`, ...found] : found
}

const filesOf = (items: readonly { path: string }[], source?: string): File[] => items.map(({ path }) => ({ path, source }))

function projectedFiles({ configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate }: VolumeProjection): File[] {
  if (configMap?.items) return filesOf(configMap.items, `ConfigMap ${quoted(configMap.name)}`)
  if (secret?.items) return filesOf(secret.items, `Secret ${quoted(secret.name)}`)
  if (downwardAPI?.items) return filesOf(downwardAPI.items, 'DownwardAPI')
  if (serviceAccountToken) return [{ path: serviceAccountToken.path, source: 'ServiceAccountToken' }]
  if (clusterTrustBundle) {
    const { name, signerName, path } = clusterTrustBundle
    return [{ path, source: `ClusterTrustBundle ${quoted(name ?? signerName)}` }]
  }
  if (!podCertificate) return []
  const { certificateChainPath = '', keyPath = '', credentialBundlePath = '' } = podCertificate
  return [
    { path: certificateChainPath, source: 'PodCertificate chain' },
    { path: keyPath, source: 'PodCertificate key' },
    { path: credentialBundlePath, source: 'PodCertificate credential bundle' },
  ]
}

/** One path of the volume; `above` is the longest other path it lies in. */
interface Place {
  readonly key: string
  readonly above: Place | undefined
  /** The files met so far at this path, and those below it, by their index. */
  readonly own: number[]
  readonly below: number[]
}

/** Each file with every earlier one it hides or lies in, in the files' order. Takes time in proportion to the paths' total length. */
function overlaps(files: readonly File[], what: string, limit: number): string[] {
  const named = files.map(({ path, source }) => ({ path: withoutEndSlashes(path), source })).filter(({ path }) => path !== '')
  const places = placesOf(named.map(({ path }) => `${path}/`))
  const found: string[] = []
  for (const [index, file] of named.entries()) {
    const place = places.get(`${file.path}/`) as Place
    const others = [...place.own, ...place.below]
    for (let above = place.above; above; above = above.above) {
      others.push(...above.own)
      if (above.below.length < limit) above.below.push(index)
    }
    place.own.push(index)
    for (const other of others.sort((left, right) => left - right)) {
      found.push(`${what}: overlapping paths: ${described(file)} with ${described(named[other] as File)}`)
      if (found.length >= limit) return found
    }
  }
  return found
}

/** In the order of the keys, all that lie in a folder follow the folder at once. */
function placesOf(keys: readonly string[]): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>()
  let last: Place | undefined
  for (const key of [...new Set(keys)].sort()) {
    let above = last
    while (above && !key.startsWith(above.key)) above = above.above
    last = { key, above, own: [], below: [] }
    places.set(key, last)
  }
  return places
}

const described = ({ path, source }: File): string => (source === undefined ? quoted(path) : `${quoted(path)} (${source})`)

const quoted = (text: string | undefined): string => JSON.stringify((text ?? '').slice(0, maxTextLength))

function withoutEndSlashes(path: string): string {
  let end = path.length
  while (end > 0 && path[end - 1] === '/') end--
  return path.slice(0, end)
}
