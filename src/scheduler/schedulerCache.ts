/**
 * What the scheduler knows of nodes and placed pods (L3), with the pods it has just placed counted before the API confirms them.
 * One view serves every cycle: cycles run one at a time and nothing changes the cache in the middle of one.
 * Upstream: pkg/scheduler/backend/cache.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { NodeInfo, type PodInfo, podInfo } from './framework/nodeInfo.ts'
import type { Snapshot } from './framework/plugin.ts'

export class SchedulerCache implements Snapshot {
  readonly #nodes = new Map<string, NodeInfo>()
  /** Where each counted pod is; assumed ones are not confirmed by the API yet. */
  readonly #placed = new Map<string, { node: string; assumed: boolean; uid: string }>()
  readonly #imageNodes = new Map<string, number>()
  #listed: NodeInfo[] | undefined

  /** Nodes that the API knows, in the order they came. */
  get nodes(): readonly NodeInfo[] {
    this.#listed ??= [...this.#nodes.values()].filter((info) => info.node !== undefined)
    return this.#listed
  }

  get(name: string): NodeInfo | undefined {
    const info = this.#nodes.get(name)
    return info?.node ? info : undefined
  }

  imageNodes(name: string): number {
    return this.#imageNodes.get(name) ?? 0
  }

  setNode(node: Frozen<Node>): void {
    const info = this.#nodeInfo(node.metadata.name ?? '')
    this.#countImages(info, -1)
    info.setNode(node)
    this.#countImages(info, 1)
    this.#listed = undefined
  }

  removeNode(name: string): void {
    const info = this.#nodes.get(name)
    if (!info) return
    this.#countImages(info, -1)
    info.setNode(undefined)
    if (info.pods.size === 0) this.#nodes.delete(name)
    this.#listed = undefined
  }

  /** Counts a pod on the node just chosen for it. */
  assume(info: PodInfo, nodeName: string): void {
    this.#place(info, nodeName, true)
  }

  /** Takes an assumption back: the binding failed. A pod that the API has confirmed stays. */
  forget(key: string): void {
    if (this.#placed.get(key)?.assumed) this.#remove(key)
  }

  isPlaced(key: string, uid: string | undefined): boolean {
    return this.#placed.get(key)?.uid === uid
  }

  /** A pod with a node, as the API says. */
  setPod(pod: Frozen<Pod>): void {
    if (pod.spec.nodeName) this.#place(podInfo(pod), pod.spec.nodeName, false)
  }

  removePod(pod: Frozen<Pod>): void {
    this.#remove(keyOf(pod))
  }

  #place(info: PodInfo, nodeName: string, assumed: boolean): void {
    this.#remove(info.key)
    this.#nodeInfo(nodeName).add(info)
    this.#placed.set(info.key, { node: nodeName, assumed, uid: info.pod.metadata.uid ?? '' })
  }

  #remove(key: string): void {
    const there = this.#placed.get(key)
    if (!there) return
    this.#placed.delete(key)
    const info = this.#nodes.get(there.node)
    info?.remove(key)
    if (info && !info.node && info.pods.size === 0) this.#nodes.delete(there.node)
  }

  /** A pod may be seen before its node. */
  #nodeInfo(name: string): NodeInfo {
    let info = this.#nodes.get(name)
    if (!info) {
      info = new NodeInfo(name)
      this.#nodes.set(name, info)
    }
    return info
  }

  #countImages(info: NodeInfo, sign: 1 | -1): void {
    for (const name of info.images.keys()) {
      const count = (this.#imageNodes.get(name) ?? 0) + sign
      if (count > 0) this.#imageNodes.set(name, count)
      else this.#imageNodes.delete(name)
    }
  }
}
