/**
 * A header block in several frames (L3): bounded in bytes and in frames, since no other frame may be between them. Pure.
 * Upstream: RFC 9113 section 4.3 and 10.5.1.
 */
import { ConnectionError, errorCode } from './errors.ts'

/** Enough for the largest block in full frames, and some smaller ones. */
const mostFrames = 64

export class HeaderBlock {
  readonly stream: number
  readonly endsStream: boolean
  readonly #mostBytes: number
  readonly #fragments: Buffer[]
  #bytes: number

  constructor(stream: number, endsStream: boolean, first: Buffer, mostBytes: number) {
    this.stream = stream
    this.endsStream = endsStream
    this.#mostBytes = mostBytes
    this.#fragments = [first]
    this.#bytes = first.length
  }

  /** @throws ConnectionError beyond the bounds */
  add(fragment: Buffer): void {
    this.#fragments.push(fragment)
    this.#bytes += fragment.length
    if (this.#fragments.length > mostFrames || this.#bytes > this.#mostBytes) throw new ConnectionError(errorCode.enhanceYourCalm, 'headers without end')
  }

  whole(): Buffer {
    return Buffer.concat(this.#fragments, this.#bytes)
  }
}
