/** The last samples of each node (L3), and the usage that follows from them. Upstream: metrics-server pkg/storage/storage.go. */
import { type NodeReading, nodeReading, type PodReading, podReading } from './readings.ts'
import { type NodeHistory, type NodeSample, podUsageOf, usageOf, withSample } from './samples.ts'

interface StoredNode {
  readonly history: NodeHistory
  readonly node: NodeReading | undefined
  /** By `namespace/name`; without the pods that have no usage yet. */
  readonly pods: ReadonlyMap<string, PodReading>
}

export class UsageStore {
  readonly #nodes = new Map<string, StoredNode>()

  /** Undefined: the node was not measured, and its earlier samples are too old for a rate. */
  put(nodeName: string, sample: NodeSample | undefined): void {
    if (sample) this.#nodes.set(nodeName, stored(withSample(this.#nodes.get(nodeName)?.history, sample)))
    else this.#nodes.delete(nodeName)
  }

  /** Forgets all other nodes. */
  keep(nodeNames: ReadonlySet<string>): void {
    for (const name of this.#nodes.keys()) if (!nodeNames.has(name)) this.#nodes.delete(name)
  }

  node(nodeName: string): NodeReading | undefined {
    return this.#nodes.get(nodeName)?.node
  }

  /** @param key `namespace/name` of a pod that is bound to the node */
  pod(nodeName: string, key: string): PodReading | undefined {
    return this.#nodes.get(nodeName)?.pods.get(key)
  }
}

function stored(history: NodeHistory): StoredNode {
  const usage = history.node && usageOf(history.node)
  const pods = new Map<string, PodReading>()
  for (const [key, pod] of history.pods) {
    const used = podUsageOf(pod)
    if (used) pods.set(key, podReading(used))
  }
  return { history, node: usage && nodeReading(usage), pods }
}
