/**
 * A node with what runs on it, summed up (L3): what plugins look at. Changed only by the cache; `generation` grows with each change.
 * Upstream: pkg/scheduler/framework/types.go NodeInfo.
 */

import type { Node, Pod } from '#api/gen/types/core.v1'
import { amountsOf, podRequests, type ResourceAmounts } from '#api/helpers/podResources'
import { type Frozen, keyOf } from '#api/machinery/meta'

/** What a pod without requests counts as when nodes are scored (upstream schedutil DefaultMilliCPURequest, DefaultMemoryRequest). */
const defaultMilliCpu = 100
const defaultMemoryBytes = 200 * 1024 * 1024

/** A pod with what scheduling asks of it again and again, computed once. */
export interface PodInfo {
  readonly key: string
  readonly pod: Frozen<Pod>
  readonly requests: ResourceAmounts
  readonly nonZeroMilliCpu: number
  readonly nonZeroMemory: number
  readonly hostPorts: readonly string[]
}

export function podInfo(pod: Frozen<Pod>): PodInfo {
  const requests = podRequests(pod, { useStatusResources: true })
  let nonZeroMilliCpu = amountsOf(pod.spec.overhead).cpu ?? 0
  let nonZeroMemory = amountsOf(pod.spec.overhead).memory ?? 0
  for (const container of pod.spec.containers) {
    const own = amountsOf(container.resources?.requests)
    nonZeroMilliCpu += own.cpu ?? defaultMilliCpu
    nonZeroMemory += own.memory ?? defaultMemoryBytes
  }
  return {
    key: keyOf(pod),
    pod,
    requests,
    nonZeroMilliCpu: Math.max(nonZeroMilliCpu, requests.cpu ?? 0),
    nonZeroMemory: Math.max(nonZeroMemory, requests.memory ?? 0),
    hostPorts: hostPortsOf(pod),
  }
}

/** `TCP/0.0.0.0/8080` for each host port; with the host's network every container port is one. */
function hostPortsOf(pod: Frozen<Pod>): string[] {
  const sidecars = (pod.spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always')
  return [...pod.spec.containers, ...sidecars].flatMap((container) =>
    (container.ports ?? []).flatMap((port) => (port.hostPort ? [`${port.protocol ?? 'TCP'}/${port.hostIP || '0.0.0.0'}/${port.hostPort}`] : [])),
  )
}

export class NodeInfo {
  readonly name: string
  node: Frozen<Node> | undefined
  readonly pods = new Map<string, PodInfo>()
  readonly requested: ResourceAmounts = {}
  allocatable: ResourceAmounts = {}
  nonZeroMilliCpu = 0
  nonZeroMemory = 0
  /** Host port → how many pods hold it (two may, for a moment, while one ends). */
  readonly usedPorts = new Map<string, number>()
  images: ReadonlyMap<string, number> = new Map()

  constructor(name: string) {
    this.name = name
  }

  setNode(node: Frozen<Node> | undefined): void {
    this.node = node
    this.allocatable = amountsOf(node?.status?.allocatable)
    const images = new Map<string, number>()
    for (const image of node?.status?.images ?? []) for (const name of image.names ?? []) images.set(name, image.sizeBytes ?? 0)
    this.images = images
  }

  add(info: PodInfo): void {
    this.remove(info.key)
    this.pods.set(info.key, info)
    this.#count(info, 1)
  }

  remove(key: string): void {
    const info = this.pods.get(key)
    if (!info) return
    this.pods.delete(key)
    this.#count(info, -1)
  }

  #count(info: PodInfo, sign: 1 | -1): void {
    for (const name in info.requests) this.requested[name] = (this.requested[name] ?? 0) + sign * (info.requests[name] ?? 0)
    this.nonZeroMilliCpu += sign * info.nonZeroMilliCpu
    this.nonZeroMemory += sign * info.nonZeroMemory
    for (const port of info.hostPorts) {
      const left = (this.usedPorts.get(port) ?? 0) + sign
      if (left > 0) this.usedPorts.set(port, left)
      else this.usedPorts.delete(port)
    }
  }
}
