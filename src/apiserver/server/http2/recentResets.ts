/** Streams that this side reset recently (L3): the peer may have sent frames for them before it saw the reset. Bounded. Pure. */
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
