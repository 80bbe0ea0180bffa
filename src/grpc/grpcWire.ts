/** What gRPC adds to HTTP/2 (L1): a prefix before each message, a status in the trailers. Upstream: grpc/doc/PROTOCOL-HTTP2.md. */
import { constants, type IncomingHttpHeaders } from 'node:http2'
import { GrpcError, type StatusName, statusNames } from './grpcError.ts'

export const contentType = 'application/grpc'
const prefixBytes = 5
const empty = Buffer.alloc(0)

/** A message as it travels: not compressed, its length before it. */
export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + message.length)
  framed[0] = 0
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, prefixBytes)
  return framed
}

/** Cuts what arrives into messages. */
export class FrameReader {
  /** Room for the beginning of a message, of which `#length` bytes are there. Room grows by doubling: the sender chooses how many chunks a message has. */
  #held: Buffer = empty
  #length = 0
  readonly #maxBytes: number

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes
  }

  /** The memory that the beginning of a message takes. */
  get heldBytes(): number {
    return this.#held.length
  }

  /** The messages that are complete now. @throws GrpcError for a compressed or too large one */
  push(chunk: Buffer): Buffer[] {
    const all = this.#length === 0 ? chunk : this.#append(chunk)
    const messages: Buffer[] = []
    let at = 0
    while (all.length - at >= prefixBytes) {
      if (all[at] !== 0) throw new GrpcError('UNIMPLEMENTED', 'the message is compressed, which was not agreed')
      const bytes = all.readUInt32BE(at + 1)
      if (bytes > this.#maxBytes) throw new GrpcError('RESOURCE_EXHAUSTED', `Received message larger than max (${bytes} vs ${this.#maxBytes})`)
      const end = at + prefixBytes + bytes
      if (all.length < end) break
      messages.push(all.subarray(at + prefixBytes, end))
      at = end
    }
    this.#length = all.length - at
    if (at > 0 || all === chunk) this.#held = this.#length > 0 ? all.subarray(at) : empty
    return messages
  }

  /** @returns all bytes that are there. Those of messages that were given out are never written over. */
  #append(chunk: Buffer): Buffer {
    const length = this.#length + chunk.length
    if (this.#held.length < length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#held.length))
      this.#held.copy(larger, 0, 0, this.#length)
      this.#held = larger
    }
    chunk.copy(this.#held, this.#length)
    return this.#held.subarray(0, length)
  }
}

/** Words for a header: what is not printable ASCII as percent signs and hexadecimal numbers. */
export function encodeMessage(text: string): string {
  return [...Buffer.from(text)].map((byte) => (byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : percent(byte))).join('')
}

const percent = (byte: number) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The error in the trailers; undefined for OK and where there is no status. */
export function errorOf(trailers: IncomingHttpHeaders): GrpcError | undefined {
  const status = trailers['grpc-status']
  if (status === undefined || status === '0') return undefined
  return new GrpcError(statusNames[Number(status)] ?? 'UNKNOWN', decodeMessage(String(trailers['grpc-message'] ?? '')))
}

/** What the HTTP status of an answer without a gRPC status means. */
export function errorOfHttpStatus(status: number | undefined): GrpcError {
  const codes: Readonly<Record<number, StatusName>> = {
    400: 'INTERNAL',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'UNIMPLEMENTED',
    429: 'UNAVAILABLE',
    502: 'UNAVAILABLE',
    503: 'UNAVAILABLE',
    504: 'UNAVAILABLE',
  }
  return new GrpcError(codes[status ?? 0] ?? 'UNKNOWN', `Received HTTP status code ${status}`)
}

/** What it means that a stream was reset by the other side. */
export function errorOfReset(code: number | undefined): GrpcError {
  const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INADEQUATE_SECURITY, NGHTTP2_NO_ERROR } = constants
  if (code === NGHTTP2_CANCEL) return new GrpcError('CANCELLED', 'Call cancelled')
  if (code === NGHTTP2_REFUSED_STREAM) return new GrpcError('UNAVAILABLE', 'Stream refused by server')
  if (code === NGHTTP2_ENHANCE_YOUR_CALM) return new GrpcError('RESOURCE_EXHAUSTED', 'Bandwidth exhausted or memory limit exceeded')
  if (code === NGHTTP2_INADEQUATE_SECURITY) return new GrpcError('PERMISSION_DENIED', 'Protocol not secure enough')
  if (code === NGHTTP2_NO_ERROR || code === undefined) return new GrpcError('UNAVAILABLE', 'the connection ended before the answer')
  return new GrpcError('INTERNAL', `Received RST_STREAM with code ${code}`)
}
