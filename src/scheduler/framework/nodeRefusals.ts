/** Why each node was refused in a cycle, and by which plugin (L3). Upstream: pkg/scheduler/framework/types.go NodeToStatus, Diagnosis. */
import type { NodeInfo } from './nodeInfo.ts'
import type { Refusal } from './status.ts'

/** The status of nodes that were not evaluated. */
export const notEvaluated: Refusal = { code: 'UnschedulableAndUnresolvable', reasons: [] }

export interface NodeRefusal {
  readonly refusal: Refusal
  readonly plugin: string
}

/** Kept as two lists: most cycles find a node, and then the refusals of the others are never read. */
export class NodeRefusals {
  readonly #names: string[] = []
  readonly #refusals: NodeRefusal[] = []
  #byNode: Map<string, NodeRefusal> | undefined
  readonly absent: Refusal

  constructor(absent: Refusal = notEvaluated) {
    this.absent = absent
  }

  get size(): number {
    return this.#names.length
  }

  /** Once for each node. */
  add(nodeName: string, refusal: NodeRefusal): void {
    this.#names.push(nodeName)
    this.#refusals.push(refusal)
    this.#byNode = undefined
  }

  get(nodeName: string): Refusal {
    return this.#map().get(nodeName)?.refusal ?? this.absent
  }

  entries(): IterableIterator<[string, NodeRefusal]> {
    return this.#map().entries()
  }

  /** The refusals to count for the message; nodes that were not looked at stand in for `absent`. */
  *forMessage(totalNodes: number): Iterable<Refusal> {
    for (const { refusal } of this.#refusals) yield refusal
    if (this.absent.reasons.length === 0) return
    for (let i = this.#names.length; i < totalNodes; i++) yield this.absent
  }

  /** Nodes whose refusal has the code, those not looked at included. */
  nodesWithCode(code: Refusal['code'], all: readonly NodeInfo[]): NodeInfo[] {
    return all.filter(({ name }) => this.get(name).code === code)
  }

  #map(): Map<string, NodeRefusal> {
    this.#byNode ??= new Map(this.#names.map((name, i) => [name, this.#refusals[i] as NodeRefusal]))
    return this.#byNode
  }
}
