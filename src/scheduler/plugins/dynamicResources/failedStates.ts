/**
 * The states of a search from which nothing was found (L3), so that each is tried once. Bounded in bytes: a full memory answers for the states that it has
 * and takes no more, which costs time and never changes a result.
 */

/** Overhead of one text: the string's header and its entry in the set. */
const bytesPerText = 64

export class FailedStates {
  readonly #maxBytes: number
  readonly #texts = new Set<string>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  has(state: string): boolean {
    return this.#texts.has(state)
  }

  add(state: string): void {
    const bytes = 2 * state.length + bytesPerText
    if (this.#bytes + bytes > this.#maxBytes || this.#texts.has(state)) return
    this.#texts.add(state)
    this.#bytes += bytes
  }

  /** At most. */
  get bytes(): number {
    return this.#bytes
  }
}
