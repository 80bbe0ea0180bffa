/**
 * Memory of requests whose last byte has not arrived (L1), of all connections of a server: a client can begin as many as it has streams, and end none. Beyond the
 * bound the connection that holds the most is ended. Upstream's gRPC server has no such bound.
 */
import type { Http2Session, ServerHttp2Stream } from 'node:http2'

export class UnfinishedRequests {
  readonly #mostBytes: number
  readonly #bytesOfStream = new Map<ServerHttp2Stream, number>()
  readonly #bytesOfSession = new Map<Http2Session, number>()
  #bytes = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** @param bytes that the stream's request takes now */
  holds(stream: ServerHttp2Stream, bytes: number): void {
    const { session } = stream
    if (!session || stream.destroyed) return
    const before = this.#bytesOfStream.get(stream)
    if (before === undefined && bytes === 0) return
    if (before === undefined) stream.once('close', () => this.#set(stream, session, 0))
    this.#set(stream, session, bytes)
    if (this.#bytes > this.#mostBytes) this.#endLargest()
  }

  #set(stream: ServerHttp2Stream, session: Http2Session, bytes: number): void {
    const more = bytes - (this.#bytesOfStream.get(stream) ?? 0)
    this.#bytes += more
    const ofSession = (this.#bytesOfSession.get(session) ?? 0) + more
    if (ofSession === 0) this.#bytesOfSession.delete(session)
    else this.#bytesOfSession.set(session, ofSession)
    if (stream.destroyed) this.#bytesOfStream.delete(stream)
    else this.#bytesOfStream.set(stream, bytes)
  }

  #endLargest(): void {
    let [largest, most] = [undefined as Http2Session | undefined, 0]
    for (const [session, bytes] of this.#bytesOfSession) if (bytes > most && !session.destroyed) [largest, most] = [session, bytes]
    if (!largest) return
    // At once: its streams close later, and until then the next largest connection would be ended for their bytes.
    for (const stream of this.#bytesOfStream.keys()) if (stream.session === largest) this.#set(stream, largest, 0)
    largest.destroy()
  }
}
