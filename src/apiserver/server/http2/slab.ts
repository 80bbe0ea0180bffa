/**
 * Memory for bytes to be sent (L3): all connections allocate pieces from shared blocks. A block whose pieces are all sent is reused: new blocks for
 * each turn made V8 collect the whole heap several times a second under lists and watches.
 */
const slabBytes = 256 * 1024
/** Bound of the blocks that are kept for reuse. */
const mostSpareBytes = 4 * 1024 * 1024

interface Block {
  readonly bytes: Buffer
  /** How many of its pieces are not sent yet. */
  out: number
}

export interface Piece {
  readonly bytes: Buffer
  /** To be called once, when the piece's bytes are no longer needed. */
  readonly sent: () => void
}

export class Slab {
  /** The buffer to write to, from {@link at} on. */
  bytes: Buffer
  at = 0
  #from = 0
  #block: Block
  #pieces: Piece[] = []
  #spare: Block[] = []
  #spareBytes = 0

  constructor() {
    this.#block = { bytes: Buffer.allocUnsafeSlow(slabBytes), out: 0 }
    this.bytes = this.#block.bytes
  }

  room(length: number): void {
    if (this.bytes.length - this.at >= length) return
    this.#cut()
    const before = this.#block
    this.#block = this.#takeBlock(length)
    this.bytes = this.#block.bytes
    this.at = 0
    this.#from = 0
    if (before.out === 0) this.#keep(before)
  }

  add(bytes: Uint8Array): void {
    this.room(bytes.length)
    this.bytes.set(bytes, this.at)
    this.at += bytes.length
  }

  /** The pieces written since the last call. */
  take(): readonly Piece[] {
    this.#cut()
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  #cut(): void {
    if (this.at > this.#from) {
      const block = this.#block
      block.out++
      this.#pieces.push({ bytes: this.bytes.subarray(this.#from, this.at), sent: () => this.#sent(block) })
    }
    this.#from = this.at
  }

  #sent(block: Block): void {
    if (--block.out > 0) return
    if (block !== this.#block) this.#keep(block)
    else if (this.at === this.#from) {
      this.at = 0
      this.#from = 0
    }
  }

  /** Uses few block sizes, so that kept blocks can be reused. */
  #takeBlock(length: number): Block {
    const found = this.#spare.findIndex(({ bytes }) => bytes.length >= length)
    if (found < 0) return { bytes: Buffer.allocUnsafeSlow(Math.ceil(Math.max(length, 1) / slabBytes) * slabBytes), out: 0 }
    const [block] = this.#spare.splice(found, 1) as [Block]
    this.#spareBytes -= block.bytes.length
    return block
  }

  #keep(block: Block): void {
    if (this.#spareBytes + block.bytes.length > mostSpareBytes) return
    this.#spareBytes += block.bytes.length
    this.#spare.push(block)
  }
}
