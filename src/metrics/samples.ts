/**
 * Computes usage from samples (L3, pure): the kept samples of a node, and the rate between two of them.
 * Upstream: metrics-server pkg/storage (node.go, pod.go, types.go).
 */

/** The time between two samples of a node. */
export const resolutionMs = 15_000
/** A container that has run for less has used its CPU mostly for starting. */
const freshContainerMs = 10_000
/**
 * Bounds of a window, which upstream does not have. The kubelet decides on the times: over a shorter window any counter is an enormous rate, and a Go client
 * reads no duration beyond 292 years, so that one node would make every list unreadable.
 */
const minWindowMs = 1_000
const maxWindowMs = 600_000

/** One measurement of a container or a node. */
export interface Point {
  /** When its CPU time was zero; 0: unknown. */
  readonly startedAtMs: number
  readonly atMs: number
  /** Since the start. */
  readonly cpuNs: number
  /** The working set. */
  readonly memoryBytes: number
}

/** Points of containers by name. */
export type PodPoints = ReadonlyMap<string, Point>

/** The content of one answer of a kubelet. */
export interface NodeSample {
  /** Absent: its figures are incomplete. */
  readonly node: Point | undefined
  /** By `namespace/name`; only of pods that are bound to the node. */
  readonly pods: ReadonlyMap<string, PodPoints>
}

/** The last two points; `previous` is absent until there are two that a rate can be computed from. */
export interface Pair {
  readonly last: Point
  readonly previous: Point | undefined
}

export interface NodeHistory {
  readonly node: Pair | undefined
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Pair>>
}

export interface Usage {
  readonly nanoCores: number
  readonly memoryBytes: number
  readonly atMs: number
  readonly windowMs: number
}

/** The state of a node after one more sample. Pods that the sample does not contain are forgotten. */
export function withSample(history: NodeHistory | undefined, sample: NodeSample): NodeHistory {
  const pods = new Map<string, ReadonlyMap<string, Pair>>()
  for (const [key, points] of sample.pods) {
    const before = history?.pods.get(key)
    const containers = new Map<string, Pair>()
    for (const [name, point] of points) containers.set(name, { last: point, previous: previousOf(before?.get(name), point) })
    pods.set(key, containers)
  }
  return { node: sample.node && { last: sample.node, previous: later(history?.node, sample.node) }, pods }
}

/** The point that a container's new one is compared with. */
function previousOf(before: Pair | undefined, point: Point): Point | undefined {
  const ageMs = point.atMs - point.startedAtMs
  // Its CPU time was zero when it started, so one point is enough.
  if (ageMs >= freshContainerMs && ageMs < resolutionMs) return { ...point, atMs: point.startedAtMs, cpuNs: 0 }
  // It was started again meanwhile.
  if (before && point.startedAtMs >= before.last.atMs) return undefined
  return later(before, point)
}

/** A kubelet may report the same measurement twice, and an older one after a newer. */
function later(before: Pair | undefined, point: Point): Point | undefined {
  return [before?.last, before?.previous].find((earlier) => earlier !== undefined && isWindow(point.atMs - earlier.atMs))
}

function isWindow(ms: number): boolean {
  return ms >= minWindowMs && ms <= maxWindowMs
}

/** Undefined with one point, where a counter has fallen, and for more cores than a number holds exactly: 9 million. */
export function usageOf({ last, previous }: Pair): Usage | undefined {
  if (!previous || last.startedAtMs < previous.startedAtMs || last.cpuNs < previous.cpuNs) return undefined
  const windowMs = last.atMs - previous.atMs
  const nanoCores = Math.floor((last.cpuNs - previous.cpuNs) / (windowMs / 1000))
  return Number.isSafeInteger(nanoCores) ? { nanoCores, memoryBytes: last.memoryBytes, atMs: last.atMs, windowMs } : undefined
}

export interface PodUsage {
  readonly containers: readonly { readonly name: string; readonly usage: Usage }[]
  /** The usage of the container that was measured first; absent: no container has usage. */
  readonly earliest: Usage | undefined
}

/** Undefined until each container has two points. A container whose counter has fallen is left out. */
export function podUsageOf(pod: ReadonlyMap<string, Pair>): PodUsage | undefined {
  const containers: { name: string; usage: Usage }[] = []
  let earliest: Usage | undefined
  for (const [name, pair] of pod) {
    if (!pair.previous) return undefined
    const usage = usageOf(pair)
    if (!usage) continue
    containers.push({ name, usage })
    if (!earliest || usage.atMs < earliest.atMs) earliest = usage
  }
  return { containers, earliest }
}
