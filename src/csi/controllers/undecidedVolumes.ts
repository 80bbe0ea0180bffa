/**
 * Volumes of which only one node can say whether they exist (L3): that node was asked to create one, and its answer left that open. Bounded: names are those of claims,
 * and a node may not answer for long.
 */
import { GrpcError } from '#grpc/grpcError'

const maxNames = 10_000
/** The claim of a name that was not asked for in this time was given up: callers repeat a call at least every five minutes. */
const forgottenAfterMs = 3_600_000

interface Entry<Node> {
  readonly node: Node
  readonly askedMs: number
}

export class UndecidedVolumes<Node> {
  readonly #monotonicMs: () => number
  readonly #limits: { readonly maxNames: number; readonly forgottenAfterMs: number }
  /** By the name of the volume, those asked for last at the end. */
  readonly #entries = new Map<string, Entry<Node>>()

  constructor(monotonicMs: () => number, limits = { maxNames, forgottenAfterMs }) {
    this.#monotonicMs = monotonicMs
    this.#limits = limits
  }

  /** The node that must be asked. @throws GrpcError UNAVAILABLE for a new name while too many are undecided */
  nodeOf(name: string): Node | undefined {
    const found = this.#entries.get(name)
    if (found) return found.node
    this.#forgetOld()
    if (this.#entries.size < this.#limits.maxNames) return undefined
    throw new GrpcError('UNAVAILABLE', `${this.#entries.size} volumes wait for the answer of a node`).inGoWords()
  }

  add(name: string, node: Node): void {
    this.#entries.delete(name)
    this.#entries.set(name, { node, askedMs: this.#monotonicMs() })
  }

  delete(name: string): void {
    this.#entries.delete(name)
  }

  #forgetOld(): void {
    const before = this.#monotonicMs() - this.#limits.forgottenAfterMs
    for (const [name, { askedMs }] of this.#entries) {
      if (askedMs > before) return
      this.#entries.delete(name)
    }
  }
}
