/** How much a peer may still send, and when to tell it that it may send more (L3): when half is used up, not each time. Pure. Upstream: RFC 9113 section 5.2. */
export class ReceiveWindow {
  readonly #size: number
  #left: number
  #consumed = 0

  constructor(size: number) {
    this.#size = size
    this.#left = size
  }

  /** False: the peer sent more than it may. */
  take(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }

  /** So many bytes were taken. @returns the increment to tell the peer of; 0: none yet */
  give(bytes: number): number {
    this.#consumed += bytes
    if (this.#consumed * 2 < this.#size) return 0
    const increment = this.#consumed
    this.#consumed = 0
    this.#left += increment
    return increment
  }
}
