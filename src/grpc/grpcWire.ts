/** What gRPC adds to HTTP/2 (L1): a prefix before each message, a status in the trailers. Upstream: grpc/doc/PROTOCOL-HTTP2.md. */
import { constants, type IncomingHttpHeaders } from 'node:http2'
import { GrpcError, type StatusName, statusNames } from './grpcError.ts'

export const contentType = 'application/grpc'
const prefixBytes = 5

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
  #pending: Buffer[] = []
  #length = 0
  readonly #maxBytes: number

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes
  }

  /** The messages that are complete now. @throws GrpcError for a compressed or too large one */
  push(chunk: Buffer): Buffer[] {
    this.#pending.push(chunk)
    this.#length += chunk.length
    const messages: Buffer[] = []
    while (this.#length >= prefixBytes) {
      if ((this.#pending[0]?.length ?? 0) < prefixBytes) this.#join()
      const first = this.#pending[0] as Buffer
      if (first[0] !== 0) throw new GrpcError('UNIMPLEMENTED', 'the message is compressed, which was not agreed')
      const bytes = first.readUInt32BE(1)
      if (bytes > this.#maxBytes) throw new GrpcError('RESOURCE_EXHAUSTED', `Received message larger than max (${bytes} vs ${this.#maxBytes})`)
      if (this.#length < prefixBytes + bytes) break
      this.#join()
      const all = this.#pending[0] as Buffer
      messages.push(all.subarray(prefixBytes, prefixBytes + bytes))
      const rest = all.subarray(prefixBytes + bytes)
      this.#pending = rest.length > 0 ? [rest] : []
      this.#length = rest.length
    }
    return messages
  }

  #join(): void {
    if (this.#pending.length > 1) this.#pending = [Buffer.concat(this.#pending)]
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
