/**
 * Which autoscalers scale which pods (L3): two of them over the same pods would work against each other. Pods with equal labels are looked at once, and of the
 * namespace's selectors those that such a label can match. Upstream: pkg/controller/util/selectors/bimultimap.go, hpasControllingPodsUnderSelector of
 * horizontal.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { type LabelMap, nothing, type Selector } from '#api/machinery/labelSelector'
import { type Frozen, refOfKey } from '#api/machinery/meta'

/** A message names no more: a user may make thousands of autoscalers for the same pods. */
export const mostClaimants = 20

export interface PodClaims {
  readonly size: number
  /** An autoscaler that has no selector yet. */
  add(key: string): void
  remove(key: string): void
  /** Does nothing for an autoscaler that was removed meanwhile. */
  set(key: string, selector: Selector): void
  /** Autoscalers of the namespace that select one of the pods, by name: all of them, or as many as a message names. */
  claimants(namespace: string, pods: readonly Frozen<Pod>[]): string[]
}

interface Space {
  readonly selectors: Map<string, Selector>
  /** The keys of the selectors that require a label with one value, by that label; under the empty text all others. */
  readonly byLabel: Map<string, Set<string>>
}

const unlabelled = ''
const labelText = (key: string, value: string) => `${key}=${value}`

function placeOf({ requirements }: Selector): string {
  const equal = requirements.find(({ operator, values }) => /^(==?|in)$/.test(operator) && values.length === 1)
  return equal ? labelText(equal.key, equal.values[0] ?? '') : unlabelled
}

export function createPodClaims(): PodClaims {
  const spaces = new Map<string, Space>()
  const spaceOf = (key: string) => spaces.get(refOfKey(key).namespace ?? '')
  const take = (space: Space, key: string, selector: Selector) => {
    space.selectors.set(key, selector)
    const place = placeOf(selector)
    const keys = space.byLabel.get(place) ?? new Set<string>()
    space.byLabel.set(place, keys.add(key))
  }
  const release = ({ selectors, byLabel }: Space, key: string) => {
    const place = placeOf(selectors.get(key) ?? nothing)
    const keys = byLabel.get(place)
    keys?.delete(key)
    if (keys?.size === 0) byLabel.delete(place)
    return selectors.delete(key)
  }
  let size = 0
  return {
    get size() {
      return size
    },
    add(key) {
      const { namespace = '' } = refOfKey(key)
      const space = spaces.get(namespace) ?? { selectors: new Map(), byLabel: new Map() }
      if (space.selectors.has(key)) return
      spaces.set(namespace, space)
      take(space, key, nothing)
      size++
    },
    remove(key) {
      const space = spaceOf(key)
      if (!space) return
      if (release(space, key)) size--
      if (space.selectors.size === 0) spaces.delete(refOfKey(key).namespace ?? '')
    },
    set(key, selector) {
      const space = spaceOf(key)
      if (!space?.selectors.has(key)) return
      release(space, key)
      take(space, key, selector)
    },
    claimants(namespace, pods) {
      const space = spaces.get(namespace)
      const labelSets = new Map<string, LabelMap>()
      for (const { metadata } of pods) labelSets.set(JSON.stringify(metadata.labels), metadata.labels ?? {})
      const found = new Set<string>()
      for (const labels of labelSets.values())
        for (const key of candidates(space, labels)) {
          if (space?.selectors.get(key)?.matches(labels)) found.add(key)
          if (found.size === mostClaimants) return [...found].sort()
        }
      return [...found].sort()
    },
  }
}

function* candidates(space: Space | undefined, labels: LabelMap): Generator<string> {
  for (const [key, value] of Object.entries(labels)) yield* space?.byLabel.get(labelText(key, value)) ?? []
  yield* space?.byLabel.get(unlabelled) ?? []
}
