/**
 * Finds the volume for a claim among all that an informer knows (L3, pure over the store): those with the fewest access modes that suffice come
 * first, so that a claim for one node does not take a volume for many. Upstream: pkg/controller/volume/persistentvolume/index.go (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { findMatchingVolume, storageClassOf } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Indexers, ReadableStore } from '#client/cache/indexer'

const modesIndex = 'accessModes'
const placeIndex = 'accessModesAndPlace'

const modesOf = ({ spec }: Frozen<PersistentVolume>) => (spec.accessModes ?? []).join(',')
const forClaim = (modes: string, claimKey: string) => `${modes} claim ${claimKey}`
const forClass = (modes: string, name: string) => `${modes} class ${name}`

/** A claim looks at its own volumes and at the free ones of its class, not at all. */
export const volumeIndexers: Indexers<PersistentVolume> = {
  [modesIndex]: (volume) => [modesOf(volume)],
  [placeIndex]: (volume) => {
    const { claimRef } = volume.spec
    return [claimRef ? forClaim(modesOf(volume), `${claimRef.namespace}/${claimRef.name}`) : forClass(modesOf(volume), storageClassOf(volume))]
  },
}

/** @param onlyPrebound the claim waits for its first consumer: the scheduler chooses among the free ones */
export function bestVolumeFor(
  claim: Frozen<PersistentVolumeClaim>,
  store: ReadableStore<PersistentVolume>,
  onlyPrebound: boolean,
): Frozen<PersistentVolume> | undefined {
  const wanted = claim.spec.accessModes ?? []
  const sufficient = store
    .indexValues(modesIndex)
    .map((text) => ({ text, modes: text.split(',') }))
    .filter(({ modes }) => wanted.every((mode) => modes.includes(mode)))
    .sort((a, b) => a.modes.length - b.modes.length || (a.text < b.text ? -1 : 1))
  for (const { text } of sufficient) {
    const own = store.byIndex(placeIndex, forClaim(text, keyOf(claim)))
    const free = onlyPrebound ? [] : store.byIndex(placeIndex, forClass(text, storageClassOf(claim)))
    const found = findMatchingVolume(claim, [...own, ...free], { onlyPrebound })
    if (found) return found
  }
  return undefined
}
