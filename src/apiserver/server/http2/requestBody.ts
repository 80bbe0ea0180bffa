/**
 * The body of a request (L3): kept as it arrives, until the handler reads it whole, as a stream, or discards it. Bytes that were not read are not
 * given back to the peer's window, so that no peer can make the server keep more than the window.
 */
import { Readable } from 'node:stream'
import { bodyEndedEarly, bodyTooLarge } from '../incoming.ts'

export class RequestBody {
  /** True when the whole body has arrived. */
  isComplete = false
  readonly #consumed: (bytes: number) => void
  #use: 'none' | 'whole' | 'stream' | 'discard' = 'none'
  #chunks: Buffer[] = []
  #bytes = 0
  /** Of them the peer does not know yet that they were taken. */
  #owed = 0
  #isCut = false
  #mostBytes = 0
  #resolve: ((whole: Buffer) => void) | undefined
  #reject: ((error: Error) => void) | undefined
  #readable: Readable | undefined

  /** @param consumed so many bytes were taken: the peer may send as many more */
  constructor(consumed: (bytes: number) => void) {
    this.#consumed = consumed
  }

  arrived(chunk: Buffer): void {
    if (this.#use === 'whole') {
      this.#keep(chunk)
      this.#consumed(chunk.length)
    } else if (this.#use === 'discard' || (this.#use === 'stream' && this.#readable?.push(chunk))) this.#consumed(chunk.length)
    else {
      this.#owed += chunk.length
      if (this.#use === 'none') this.#keep(chunk)
    }
  }

  completed(): void {
    this.isComplete = true
    if (this.#use === 'whole') this.#finish()
    else this.#readable?.push(null)
  }

  /** The stream is over, perhaps before the body was. */
  cut(): void {
    this.#settle()
    if (this.isComplete) return
    this.#isCut = true
    this.#reject?.(bodyEndedEarly())
    this.#readable?.destroy()
    this.#discard()
  }

  /** @throws RequestEntityTooLarge beyond that many bytes, BadRequest when the body ends early */
  whole(mostBytes: number, announcedBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#mostBytes = mostBytes
      if (this.#isCut) reject(bodyEndedEarly())
      else if (announcedBytes > mostBytes || this.#bytes > mostBytes) this.#refuse()
      else {
        this.#use = 'whole'
        this.#settle()
        if (this.isComplete) this.#finish()
      }
    })
  }

  stream(): Readable {
    if (this.#readable) return this.#readable
    const readable = new Readable({ read: () => this.#settle() })
    this.#readable = readable
    this.#use = 'stream'
    for (const chunk of this.#chunks) readable.push(chunk)
    this.#chunks = []
    if (this.isComplete) readable.push(null)
    else if (this.#isCut) readable.destroy()
    return readable
  }

  #keep(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#use === 'whole' && this.#bytes > this.#mostBytes) this.#refuse()
    else this.#chunks.push(chunk)
  }

  /** The rest is read and thrown away, so that the client gets to see the answer. */
  #refuse(): void {
    this.#reject?.(bodyTooLarge(this.#mostBytes))
    this.#discard()
  }

  /** Drops the buffered bytes and all that follow. */
  #discard(): void {
    this.#use = 'discard'
    this.#chunks = []
    this.#settle()
  }

  #finish(): void {
    this.#resolve?.(this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#bytes))
    this.#chunks = []
  }

  #settle(): void {
    if (this.#owed === 0) return
    const owed = this.#owed
    this.#owed = 0
    this.#consumed(owed)
  }
}
