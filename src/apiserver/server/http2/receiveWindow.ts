/** The flow-control window of a peer (L3): it is extended by WINDOW_UPDATE when half is used, not for each frame. Pure. Upstream: RFC 9113 section 5.2. */
export class ReceiveWindow {
  readonly #size: number
  #left: number
  #consumed = 0

  constructor(size: number) {
    this.#size = size
    this.#left = size
  }

  /** False: the peer exceeded the window. */
  take(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }

  /** Gives consumed bytes back. @returns the increment of a WINDOW_UPDATE; 0: none yet */
  give(bytes: number): number {
    this.#consumed += bytes
    if (this.#consumed * 2 < this.#size) return 0
    const increment = this.#consumed
    this.#consumed = 0
    this.#left += increment
    return increment
  }
}
