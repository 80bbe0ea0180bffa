/**
 * Computes from which NUMA nodes a number of devices can be allocated (L3, pure): hints for the topology manager, and the devices of its choice.
 * Upstream: kubelet/cm/devicemanager/topology_hints.go, manager.go filterByAffinity (v1.36).
 */
import { least } from '#base/extremes'
import { type NumaMask, nodeCount, nodeMasks, nodesIn, type TopologyHint } from '../topology/hints.ts'

/** Device → the NUMA nodes that it belongs to; none: unknown. */
export type DeviceNodes = (id: string) => readonly number[]

/** @param reusable devices that the pod's init containers had: they must be among those chosen. */
export function deviceHints(
  nodes: readonly number[],
  nodesOf: DeviceNodes,
  devices: { readonly all: Iterable<string>; readonly available: ReadonlySet<string>; readonly reusable: ReadonlySet<string> },
  count: number,
): TopologyHint[] {
  const inMask = (id: string, mask: NumaMask) => nodesOf(id).some((node) => mask & (1 << node))
  const all = [...devices.all]
  let least = nodes.length
  const masks: NumaMask[] = []
  for (const mask of nodeMasks(nodes)) {
    if (all.filter((id) => inMask(id, mask)).length >= count) least = Math.min(least, nodeCount(mask))
    const reused = [...devices.reusable].filter((id) => inMask(id, mask)).length
    if (reused < devices.reusable.size) continue
    const matching = reused + [...devices.available].filter((id) => !devices.reusable.has(id) && inMask(id, mask)).length
    if (matching >= count) masks.push(mask)
  }
  return masks.map((mask) => ({ affinity: mask, preferred: nodeCount(mask) === least }))
}

export interface ByAffinity {
  readonly aligned: string[]
  readonly unaligned: string[]
  readonly withoutAffinity: string[]
}

/** Sorts available devices by whether they are in the affinity: first the devices of nodes with few devices, because they fit other requests least. */
export function byAffinity(available: readonly string[], nodesOf: DeviceNodes, affinity: NumaMask | undefined): ByAffinity {
  const ids = [...available].sort()
  if (affinity === undefined) return { aligned: [], unaligned: [], withoutAffinity: ids }
  const wanted = new Set(nodesIn(affinity))
  const perNode = new Map<number, number>()
  for (const id of ids) for (const node of nodesOf(id)) perNode.set(node, (perNode.get(node) ?? 0) + 1)
  const fewest = (id: string) => least(nodesOf(id).map((node) => perNode.get(node) ?? 0))
  const placed = ids.filter((id) => nodesOf(id).length > 0).sort((a, b) => nodesOf(a).length - nodesOf(b).length || fewest(a) - fewest(b))
  return {
    aligned: placed.filter((id) => nodesOf(id).some((node) => wanted.has(node))),
    unaligned: placed.filter((id) => !nodesOf(id).some((node) => wanted.has(node))),
    withoutAffinity: ids.filter((id) => nodesOf(id).length === 0),
  }
}
