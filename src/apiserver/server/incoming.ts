/**
 * From what arrived on a connection to a ServerRequest (L3), the same for HTTP/2 and HTTP/1.1.
 */
import type { Readable } from 'node:stream'
import { badRequest, StatusError } from '#api/machinery/status'
import type { Cancellation } from '../cancellation.ts'
import type { PeerCertificate, RequestBody, ServerRequest } from '../request.ts'

/** What a connection knows of a request. */
export interface Arrived {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Lower-case names, without HTTP/2's pseudo headers. */
  readonly headers: ServerRequest['headers']
  readonly body: Readable
  /** Whether a body was announced. */
  readonly hasBody: boolean
  readonly peer: Peer
  readonly cancellation: Cancellation
  readonly isHttp2: boolean
}

/** Who is at the other end; one object for all requests of a connection. */
export interface Peer {
  readonly remoteAddress: string
  readonly peerCertificate: PeerCertificate | undefined
}

const noQuery = new URLSearchParams()

/** @throws BadRequest for a path that does not decode or climbs */
export function serverRequest(arrived: Arrived): ServerRequest {
  return new IncomingRequest(arrived)
}

class IncomingRequest implements ServerRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly rawQuery: string
  readonly headers: ServerRequest['headers']
  readonly remoteAddress: string
  readonly peerCertificate: PeerCertificate | undefined
  readonly isHttp2: boolean
  readonly responseHeaders: Record<string, string | readonly string[]> = {}
  readonly cancellation: Cancellation
  readonly body: Readable | undefined
  readonly warnings: string[] = []
  receivedMs = 0
  readonly #stream: Readable
  #read: Promise<Buffer> | undefined

  constructor({ method, url, headers, body, hasBody, peer, cancellation, isHttp2 }: Arrived) {
    const question = url.indexOf('?')
    this.method = method
    this.path = decodePath(question < 0 ? url : url.slice(0, question))
    this.rawQuery = question < 0 ? '' : url.slice(question + 1)
    this.query = this.rawQuery === '' ? noQuery : new URLSearchParams(this.rawQuery)
    this.headers = headers
    this.remoteAddress = peer.remoteAddress
    this.peerCertificate = peer.peerCertificate
    this.isHttp2 = isHttp2
    this.cancellation = cancellation
    this.body = hasBody ? body : undefined
    this.#stream = body
  }

  async readBody(limitBytes: number): Promise<RequestBody> {
    const contentType = this.headers['content-type']
    this.#read ??= readAll(this.#stream, limitBytes, Number(this.headers['content-length'] ?? 0))
    return { type: 'bytes', bytes: await this.#read, contentType: typeof contentType === 'string' ? contentType : '' }
  }
}

function decodePath(raw: string): string {
  const path = raw.includes('%') ? decode(raw) : raw
  // Segments that climb never name a resource; decoded slashes and dots must not change what is authorized.
  if (path.includes('/..') && path.split('/').includes('..')) throw badRequest('the request path must not contain dot segments')
  if (path.includes('\0')) throw badRequest('the request path must not contain NUL')
  return path.startsWith('/') ? path : `/${path}`
}

function decode(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    throw badRequest('the request path is not valid percent-encoding')
  }
}

function endedEarly(): StatusError {
  return badRequest('the request body ended early')
}

function readAll(body: Readable, limitBytes: number, announced: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = () => new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`)
    if (announced > limitBytes) {
      body.resume()
      reject(tooLarge())
      return
    }
    // Whoever asks late hears neither event: an HTTP/2 stream ends an empty body without waiting for a reader.
    if (body.readableEnded) {
      resolve(Buffer.alloc(0))
      return
    }
    if (body.destroyed) {
      reject(endedEarly())
      return
    }
    const chunks: Buffer[] = []
    let length = 0
    body.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > limitBytes) {
        // The rest is read and thrown away, so that the client gets to see the answer.
        chunks.length = 0
        reject(tooLarge())
      } else chunks.push(chunk)
    })
    body.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    body.on('error', reject)
    body.on('close', () => {
      if (!body.readableEnded) reject(endedEarly())
    })
  })
}
