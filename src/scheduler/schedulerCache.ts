/**
 * The scheduler's view of nodes and placed pods (L3), with the pods it has just placed counted before the API confirms them.
 * One view serves every cycle, without copies: a decision is taken in one go and nothing changes the cache in the middle of it. What a change
 * costs depends on the change, never on the number of nodes. Upstream: pkg/scheduler/backend/cache.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { countIn, NodeInfo } from './framework/nodeInfo.ts'
import { type PodInfo, podInfo, withPod } from './framework/podInfo.ts'
import type { PlacementIndex, Snapshot } from './framework/snapshot.ts'
import { interleaveZones, zoneOf } from './nodeTree.ts'

export interface Placed {
  readonly info: PodInfo
  readonly node: string
  readonly assumed: boolean
}

export class SchedulerCache implements Snapshot {
  readonly #nodes = new Map<string, NodeInfo>()
  /** Nodes that have pods, and are not in the API. */
  readonly #unknown = new Map<string, NodeInfo>()
  /** Where each counted pod is; assumed ones are not confirmed by the API yet. */
  readonly #placed = new Map<string, Placed>()
  readonly #imageNodes = new Map<string, number>()
  readonly #usedPvcs = new Map<string, number>()
  readonly #indexes: PlacementIndex[] = []
  readonly nodesWithAffinityPods = new Set<NodeInfo>()
  readonly nodesWithRequiredAntiAffinityPods = new Set<NodeInfo>()
  /** Slots of removed nodes, reused so that arrays indexed by slot stay as short as the peak number of nodes. */
  readonly #freeSlots: number[] = []
  #usedSlots = 0
  #listed: readonly NodeInfo[] | undefined
  #generation = 0
  #assumed = 0

  get nodes(): readonly NodeInfo[] {
    this.#listed ??= interleaveZones(this.#nodes.values())
    return this.#listed
  }

  get(name: string): NodeInfo | undefined {
    return this.#nodes.get(name)
  }

  get nodeCount(): number {
    return this.#nodes.size
  }

  get podCount(): number {
    return this.#placed.size
  }

  get assumedCount(): number {
    return this.#assumed
  }

  imageNodes(name: string): number {
    return this.#imageNodes.get(name) ?? 0
  }

  isPvcUsed(key: string): boolean {
    return this.#usedPvcs.has(key)
  }

  setNode(node: Frozen<Node>): void {
    const { name = '' } = node.metadata
    let info = this.#nodes.get(name)
    if (!info) {
      info = this.#unknown.get(name) ?? this.#newNodeInfo(name)
      this.#unknown.delete(name)
      this.#nodes.set(name, info)
      this.#listed = undefined
    } else if (zoneOf(info.node) !== zoneOf(node)) this.#listed = undefined
    this.#countImages(info, -1)
    info.setNode(node)
    this.#countImages(info, 1)
    info.generation = ++this.#generation
    for (const index of this.#indexes) index.nodeSet?.(info)
  }

  removeNode(name: string): void {
    const info = this.#nodes.get(name)
    if (!info) return
    this.#countImages(info, -1)
    this.#nodes.delete(name)
    this.#listed = undefined
    for (const index of this.#indexes) index.nodeRemoved?.(info)
    if (info.pods.size === 0) {
      this.#freeSlots.push(info.slot)
      return
    }
    info.setNode({ apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: {}, status: {} } as Node)
    this.#unknown.set(name, info)
  }

  /** Counts a pod on the node just chosen for it. */
  assume(info: PodInfo, nodeName: string): void {
    this.#place(info, nodeName, true)
  }

  /** Takes an assumption back: the binding failed. A pod that the API has confirmed stays. @returns whether there was one */
  forget(key: string, uid: string | undefined): boolean {
    if (!this.isAssumed(key, uid)) return false
    this.#remove(key)
    return true
  }

  isPlaced(key: string, uid: string | undefined): boolean {
    return this.#placedAs(key, uid) !== undefined
  }

  /** Where a pod is counted, by its key. */
  placementOf(key: string): Placed | undefined {
    return this.#placed.get(key)
  }

  isAssumed(key: string, uid: string | undefined): boolean {
    return this.#placedAs(key, uid)?.assumed === true
  }

  #placedAs(key: string, uid: string | undefined): Placed | undefined {
    const there = this.#placed.get(key)
    return there?.info.pod.metadata.uid === uid ? there : undefined
  }

  /** A pod that the API shows on a node. */
  setPod(pod: Frozen<Pod>): void {
    const nodeName = pod.spec.nodeName
    if (!nodeName) return
    const key = keyOf(pod)
    const there = this.#placed.get(key)
    const info = there && there.node === nodeName ? withPod(there.info, pod) : undefined
    if (!there || info !== there.info) this.#place(info ?? podInfo(pod, isSamePod(there?.info, pod) ? there?.info : undefined), nodeName, false)
    else if (there.assumed) {
      this.#placed.set(key, { ...there, assumed: false })
      this.#assumed--
    }
  }

  removePod(pod: Frozen<Pod>): void {
    this.#remove(keyOf(pod))
  }

  maintain(index: PlacementIndex): void {
    this.#indexes.push(index)
    for (const info of [...this.#unknown.values(), ...this.#nodes.values()]) for (const pod of info.pods.values()) index.podAdded(pod, info)
    for (const info of this.#nodes.values()) index.nodeSet?.(info)
  }

  #place(info: PodInfo, nodeName: string, assumed: boolean): void {
    const there = this.#placed.get(info.key)
    const same = there?.node === nodeName ? (this.#nodes.get(nodeName) ?? this.#unknown.get(nodeName)) : undefined
    if (there && same) {
      this.#replace(there, info, same, assumed)
      return
    }
    this.#remove(info.key)
    const node = this.#nodeInfo(nodeName)
    node.add(info)
    this.#placed.set(info.key, { info, node: nodeName, assumed })
    if (assumed) this.#assumed++
    for (const claim of info.pvcs) countIn(this.#usedPvcs, claim, 1)
    this.#changed(node)
    for (const index of this.#indexes) index.podAdded(info, node)
  }

  /** A newer state of a pod that stays on its node. */
  #replace(there: Placed, info: PodInfo, node: NodeInfo, assumed: boolean): void {
    node.remove(info.key)
    for (const index of this.#indexes) if (!index.podChanged) index.podRemoved(there.info, node)
    node.add(info)
    this.#placed.set(info.key, { info, node: node.name, assumed })
    this.#assumed += Number(assumed) - Number(there.assumed)
    for (const claim of there.info.pvcs) countIn(this.#usedPvcs, claim, -1)
    for (const claim of info.pvcs) countIn(this.#usedPvcs, claim, 1)
    this.#changed(node)
    for (const index of this.#indexes) {
      if (index.podChanged) index.podChanged(there.info, info, node)
      else index.podAdded(info, node)
    }
  }

  #remove(key: string): void {
    const there = this.#placed.get(key)
    if (!there) return
    this.#placed.delete(key)
    if (there.assumed) this.#assumed--
    for (const claim of there.info.pvcs) countIn(this.#usedPvcs, claim, -1)
    const node = this.#nodes.get(there.node) ?? this.#unknown.get(there.node)
    if (!node) return
    node.remove(key)
    this.#changed(node)
    for (const index of this.#indexes) index.podRemoved(there.info, node)
    if (node.pods.size === 0 && this.#unknown.delete(there.node)) this.#freeSlots.push(node.slot)
  }

  #changed(node: NodeInfo): void {
    node.generation = ++this.#generation
    if (node.podsWithAffinity.size > 0) this.nodesWithAffinityPods.add(node)
    else this.nodesWithAffinityPods.delete(node)
    if (node.podsWithRequiredAntiAffinity.size > 0) this.nodesWithRequiredAntiAffinityPods.add(node)
    else this.nodesWithRequiredAntiAffinityPods.delete(node)
  }

  /** A pod may be seen before its node, and after it. */
  #nodeInfo(name: string): NodeInfo {
    let info = this.#nodes.get(name) ?? this.#unknown.get(name)
    if (!info) {
      info = this.#newNodeInfo(name)
      this.#unknown.set(name, info)
    }
    return info
  }

  #newNodeInfo(name: string): NodeInfo {
    return new NodeInfo(name, this.#freeSlots.pop() ?? this.#usedSlots++)
  }

  #countImages(info: NodeInfo, sign: 1 | -1): void {
    for (const name of info.images.keys()) countIn(this.#imageNodes, name, sign)
  }
}

/** True for two states of one pod: the compiled affinity terms can be reused. */
function isSamePod(info: PodInfo | undefined, { metadata }: Frozen<Pod>): boolean {
  return info !== undefined && metadata.uid !== undefined && info.pod.metadata.uid === metadata.uid
}
