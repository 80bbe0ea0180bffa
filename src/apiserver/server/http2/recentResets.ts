/** Streams that this side has reset lately (L3): frames that were on their way then are no fault of the peer. Bounded. Pure. */
const mostRemembered = 128

export class RecentResets {
  readonly #streams = new Set<number>()

  add(stream: number): void {
    this.#streams.add(stream)
    if (this.#streams.size > mostRemembered) this.#streams.delete(this.#streams.values().next().value ?? stream)
  }

  has(stream: number): boolean {
    return this.#streams.has(stream)
  }
}
