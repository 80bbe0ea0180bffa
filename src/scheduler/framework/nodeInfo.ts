/**
 * A node with what runs on it, summed up (L3): what plugins look at. Changed only by the cache, and in clones by preemption; `generation`
 * grows with each change, over all nodes. Upstream: pkg/scheduler/framework/types.go NodeInfo.
 */
import type { Node, Taint } from '#api/gen/types/core.v1'
import { amountsOf, type ResourceAmounts } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import type { PodInfo } from './podInfo.ts'

const noTaints: readonly Frozen<Taint>[] = []
const noSlot = -1

export class NodeInfo {
  readonly name: string
  /** A small number that no other node of the cache has: what is kept for every node may be an array. Clones, which may differ from what is kept, have none: -1. */
  readonly slot: number
  /** An empty node of that name as long as only its pods are known. */
  node: Frozen<Node>
  readonly pods = new Map<string, PodInfo>()
  /** Pods with any affinity or anti-affinity term, and those with required anti-affinity. */
  readonly podsWithAffinity = new Map<string, PodInfo>()
  readonly podsWithRequiredAntiAffinity = new Map<string, PodInfo>()
  readonly requested: ResourceAmounts = {}
  allocatable: ResourceAmounts = {}
  // Values that filters and scores read for every node, stored next to each other: reading them through `requested` and `node` takes most of a cycle's time.
  podCount = 0
  allocatablePods = 0
  requestedMilliCpu = 0
  allocatableMilliCpu = 0
  requestedMemory = 0
  allocatableMemory = 0
  taints: readonly Frozen<Taint>[] = noTaints
  unschedulable = false
  nonZeroMilliCpu = 0
  nonZeroMemory = 0
  /** Host port → how many pods hold it (two may, for a moment, while one ends). */
  readonly usedPorts = new Map<string, number>()
  /** Image name → size in bytes. */
  images: ReadonlyMap<string, number> = new Map()
  /** Claim key → how many pods here use it. */
  readonly pvcRefCounts = new Map<string, number>()
  generation = 0

  constructor(name: string, slot: number = noSlot) {
    this.name = name
    this.slot = slot
    this.node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: {}, status: {} }
  }

  setNode(node: Frozen<Node>): void {
    const before = this.node
    this.node = node
    this.taints = node.spec?.taints ?? noTaints
    this.unschedulable = node.spec?.unschedulable === true
    if (before.status?.allocatable !== node.status?.allocatable) this.#setAllocatable(amountsOf(node.status?.allocatable))
    if (before.status?.images === node.status?.images) return
    const images = new Map<string, number>()
    for (const image of node.status?.images ?? []) for (const name of image.names ?? []) images.set(name, image.sizeBytes ?? 0)
    this.images = images
  }

  #setAllocatable(amounts: ResourceAmounts): void {
    this.allocatable = amounts
    this.allocatablePods = amounts.pods ?? 0
    this.allocatableMilliCpu = amounts.cpu ?? 0
    this.allocatableMemory = amounts.memory ?? 0
  }

  add(info: PodInfo): void {
    this.remove(info.key)
    this.pods.set(info.key, info)
    const antiAffine = info.requiredAntiAffinity.length > 0
    if (antiAffine) this.podsWithRequiredAntiAffinity.set(info.key, info)
    if (antiAffine || info.requiredAffinity.length > 0 || info.preferredAffinity.length > 0 || info.preferredAntiAffinity.length > 0)
      this.podsWithAffinity.set(info.key, info)
    this.#count(info, 1)
  }

  remove(key: string): void {
    const info = this.pods.get(key)
    if (!info) return
    this.pods.delete(key)
    this.podsWithAffinity.delete(key)
    this.podsWithRequiredAntiAffinity.delete(key)
    this.#count(info, -1)
  }

  /** A copy to try things on. */
  clone(): NodeInfo {
    const copy = new NodeInfo(this.name)
    copy.node = this.node
    copy.#setAllocatable(this.allocatable)
    copy.taints = this.taints
    copy.unschedulable = this.unschedulable
    copy.podCount = this.podCount
    copy.requestedMilliCpu = this.requestedMilliCpu
    copy.requestedMemory = this.requestedMemory
    copy.images = this.images
    copy.generation = this.generation
    copy.nonZeroMilliCpu = this.nonZeroMilliCpu
    copy.nonZeroMemory = this.nonZeroMemory
    Object.assign(copy.requested, this.requested)
    for (const [key, info] of this.pods) copy.pods.set(key, info)
    for (const [key, info] of this.podsWithAffinity) copy.podsWithAffinity.set(key, info)
    for (const [key, info] of this.podsWithRequiredAntiAffinity) copy.podsWithRequiredAntiAffinity.set(key, info)
    for (const [port, count] of this.usedPorts) copy.usedPorts.set(port, count)
    for (const [claim, count] of this.pvcRefCounts) copy.pvcRefCounts.set(claim, count)
    return copy
  }

  #count(info: PodInfo, sign: 1 | -1): void {
    for (const name in info.requests) this.requested[name] = (this.requested[name] ?? 0) + sign * (info.requests[name] ?? 0)
    this.podCount += sign
    this.requestedMilliCpu += sign * info.milliCpu
    this.requestedMemory += sign * info.memory
    this.nonZeroMilliCpu += sign * info.nonZeroMilliCpu
    this.nonZeroMemory += sign * info.nonZeroMemory
    for (const port of info.hostPorts) countIn(this.usedPorts, port, sign)
    for (const claim of info.pvcs) countIn(this.pvcRefCounts, claim, sign)
  }
}

/** Adds to a counter that is absent when 0. */
export function countIn<K>(counts: Map<K, number>, key: K, by: number): void {
  const left = (counts.get(key) ?? 0) + by
  if (left > 0) counts.set(key, left)
  else counts.delete(key)
}
