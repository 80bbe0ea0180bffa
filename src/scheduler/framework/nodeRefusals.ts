/** Why each node was refused in a cycle, and by which plugin (L3). Upstream: pkg/scheduler/framework/types.go NodeToStatus, Diagnosis. */
import type { NodeInfo } from './nodeInfo.ts'
import type { Refusal } from './status.ts'

/** What is said of nodes that were not looked at. */
export const notEvaluated: Refusal = { code: 'UnschedulableAndUnresolvable', reasons: [] }

export class NodeRefusals {
  readonly #byNode = new Map<string, { readonly refusal: Refusal; readonly plugin: string }>()
  readonly absent: Refusal

  constructor(absent: Refusal = notEvaluated) {
    this.absent = absent
  }

  get size(): number {
    return this.#byNode.size
  }

  set(nodeName: string, refusal: Refusal, plugin: string): void {
    this.#byNode.set(nodeName, { refusal, plugin })
  }

  get(nodeName: string): Refusal {
    return this.#byNode.get(nodeName)?.refusal ?? this.absent
  }

  entries(): IterableIterator<[string, { readonly refusal: Refusal; readonly plugin: string }]> {
    return this.#byNode.entries()
  }

  /** The refusals to count for the message; nodes that were not looked at stand in for `absent`. */
  *forMessage(totalNodes: number): Iterable<Refusal> {
    for (const { refusal } of this.#byNode.values()) yield refusal
    if (this.absent.reasons.length === 0) return
    for (let i = this.#byNode.size; i < totalNodes; i++) yield this.absent
  }

  /** Nodes whose refusal has the code, those not looked at included. */
  nodesWithCode(code: Refusal['code'], all: readonly NodeInfo[]): NodeInfo[] {
    return all.filter(({ name }) => this.get(name).code === code)
  }
}
