/**
 * NUMA affinities as bit masks, the hints that providers give about them, and how the best common one is found (L3, pure).
 * Upstream: kubelet/cm/topologymanager/policy.go, bitmask/bitmask.go, numa_info.go (v1.36).
 */
import { greatest, least } from '#base/extremes'

/** Bit n stands for NUMA node n. At most 31 nodes, which is far beyond what can be enumerated. */
export type NumaMask = number

export interface TopologyHint {
  /** Undefined: any NUMA node will do. */
  readonly affinity: NumaMask | undefined
  readonly preferred: boolean
}

/** Resource → hints. Undefined hints: no preference; an empty list: there is no way. */
export type ProviderHints = Readonly<Record<string, readonly TopologyHint[] | undefined>>

export interface NumaInfo {
  readonly nodes: readonly number[]
  /** Node → its distances to all nodes, in the order of their ids. */
  distance(from: number, to: number): number
}

export const maskOf = (nodes: Iterable<number>): NumaMask => [...nodes].reduce((mask, node) => mask | (1 << node), 0)

export function nodesIn(mask: NumaMask): number[] {
  const nodes: number[] = []
  for (let node = 0; node < 31; node++) if (mask & (1 << node)) nodes.push(node)
  return nodes
}

export const nodeCount = (mask: NumaMask): number => nodesIn(mask).length

/** Every combination of k of the items, in the items' order. */
export function* combinations<T>(items: readonly T[], k: number, from = 0): Generator<T[]> {
  if (k === 0) yield []
  for (let index = from; k > 0 && index <= items.length - k; index++) {
    for (const rest of combinations(items, k - 1, index + 1)) yield [items[index] as T, ...rest]
  }
}

/** Every combination of NUMA nodes, the small ones first. */
export function* nodeMasks(nodes: readonly number[]): Generator<NumaMask> {
  for (let size = 1; size <= nodes.length; size++) for (const combination of combinations(nodes, size)) yield maskOf(combination)
}

/** One list of hints per provider and resource, in which "no preference" and "no way" are hints as well. */
export function flattenHints(providers: readonly ProviderHints[]): TopologyHint[][] {
  return providers.flatMap((hints): TopologyHint[][] => {
    const resources = Object.values(hints)
    if (resources.length === 0) return [[{ affinity: undefined, preferred: true }]]
    return resources.map((list) => {
      if (list === undefined) return [{ affinity: undefined, preferred: true }]
      return list.length === 0 ? [{ affinity: undefined, preferred: false }] : [...list]
    })
  })
}

function narrower(candidate: NumaMask, current: NumaMask): boolean {
  const difference = nodeCount(candidate) - nodeCount(current)
  return difference === 0 ? candidate < current : difference < 0
}

function averageDistance(info: NumaInfo, mask: NumaMask): number {
  const nodes = nodesIn(mask)
  const pairs = nodes.flatMap((from) => nodes.map((to) => info.distance(from, to)))
  return pairs.length === 0 ? 0 : pairs.reduce((sum, distance) => sum + distance, 0) / pairs.length
}

function closer(info: NumaInfo, candidate: NumaMask, current: NumaMask): boolean {
  if (nodeCount(candidate) !== nodeCount(current)) return narrower(candidate, current)
  const difference = averageDistance(info, candidate) - averageDistance(info, current)
  return difference === 0 ? narrower(candidate, current) : difference < 0
}

function mergePermutation(everything: NumaMask, permutation: readonly TopologyHint[]): { affinity: NumaMask; preferred: boolean } {
  const affinities = permutation.flatMap(({ affinity }) => (affinity === undefined ? [] : [affinity]))
  const alike = affinities.every((affinity) => affinity === affinities[0])
  return { affinity: affinities.reduce((mask, affinity) => mask & affinity, everything), preferred: alike && permutation.every((hint) => hint.preferred) }
}

/** How many nodes the most demanding resource needs at least: a hint that is not preferred should be close to it. */
function bestNonPreferredCount(lists: readonly (readonly TopologyHint[])[]): number {
  const smallest = lists.flatMap((list) => {
    const counts = list.flatMap(({ affinity }) => (affinity === undefined ? [] : [nodeCount(affinity)]))
    return counts.length === 0 ? [] : [least(counts)]
  })
  return greatest(smallest, 0)
}

/** The best of all permutations of one hint per list. @param preferClosest compare equally narrow affinities by distance. */
export function mergeHints(info: NumaInfo, lists: readonly (readonly TopologyHint[])[], preferClosest: boolean): { affinity: NumaMask; preferred: boolean } {
  const everything = maskOf(info.nodes)
  const target = bestNonPreferredCount(lists)
  type Merged = { affinity: NumaMask; preferred: boolean }
  const better = (candidate: Merged, current: Merged) =>
    preferClosest ? closer(info, candidate.affinity, current.affinity) : narrower(candidate.affinity, current.affinity)
  const replaces = (candidate: Merged, current: Merged): boolean => {
    if (candidate.preferred !== current.preferred) return candidate.preferred
    const [has, would] = [nodeCount(current.affinity), nodeCount(candidate.affinity)]
    if (current.preferred || has > target) return better(candidate, current)
    if (has === target) return would === target && better(candidate, current)
    // Too narrow for what is asked: grow towards the target, not beyond.
    if (would > target) return false
    return would === has ? better(candidate, current) : would > has
  }
  let best: Merged | undefined
  for (const permutation of permutations(lists)) {
    const candidate = mergePermutation(everything, permutation)
    if (candidate.affinity !== 0 && (!best || replaces(candidate, best))) best = candidate
  }
  return best ?? { affinity: everything, preferred: false }
}

function* permutations(lists: readonly (readonly TopologyHint[])[], index = 0, chosen: TopologyHint[] = []): Generator<readonly TopologyHint[]> {
  if (index === lists.length) {
    yield chosen
    return
  }
  for (const hint of lists[index] ?? []) yield* permutations(lists, index + 1, [...chosen, hint])
}
