/**
 * Memory for what is about to be sent (L3): all connections cut their pieces from one block after the other, which is let go of when the last
 * piece of it is. Pieces are never written again.
 */
const slabBytes = 256 * 1024

export class Slab {
  /** Where to write, from {@link at} on, what room was made for. */
  bytes: Buffer = Buffer.allocUnsafeSlow(slabBytes)
  at = 0
  #from = 0
  #pieces: Buffer[] = []

  room(length: number): void {
    if (this.bytes.length - this.at >= length) return
    this.#cut()
    this.bytes = Buffer.allocUnsafeSlow(Math.max(slabBytes, length))
    this.at = 0
    this.#from = 0
  }

  add(bytes: Uint8Array): void {
    this.room(bytes.length)
    this.bytes.set(bytes, this.at)
    this.at += bytes.length
  }

  /** What was written since the last time. */
  take(): readonly Buffer[] {
    this.#cut()
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  #cut(): void {
    if (this.at > this.#from) this.#pieces.push(this.bytes.subarray(this.#from, this.at))
    this.#from = this.at
  }
}
