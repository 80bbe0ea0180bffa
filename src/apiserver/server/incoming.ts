/**
 * Makes a ServerRequest from a request of either protocol (L3).
 */
import type { Readable } from 'node:stream'
import { badRequest, StatusError } from '#api/machinery/status'
import type { Cancellation } from '../core/cancellation.ts'
import type { PeerCertificate, RequestBody, ServerRequest } from '../core/request.ts'

/** A request as it arrived on a connection. */
export interface Arrived {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Lower-case names, without HTTP/2's pseudo headers. */
  readonly headers: ServerRequest['headers']
  /** The body as it arrives; read at most once, and not together with {@link readBody}. Undefined: there is none. */
  readonly body: Readable | undefined
  /** @throws RequestEntityTooLarge beyond that many bytes, BadRequest when the body ends early */
  readBody(limitBytes: number): Promise<Buffer>
  readonly peer: Peer
  readonly cancellation: Cancellation
  readonly isHttp2: boolean
}

/** The peer of a connection; one object for all its requests. */
export interface Peer {
  readonly remoteAddress: string
  readonly peerCertificate: PeerCertificate | undefined
}

const noQuery = new URLSearchParams()

/** @throws BadRequest for a path that does not decode, or has dot segments */
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
  readonly warnings: string[] = []
  receivedMs = 0
  bodyBytes: number | undefined = undefined
  readonly #arrived: Arrived
  #read: Promise<Buffer> | undefined

  constructor(arrived: Arrived) {
    const { method, url, headers, peer, cancellation, isHttp2 } = arrived
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
    this.#arrived = arrived
  }

  get body(): Readable | undefined {
    return this.#arrived.body
  }

  async readBody(limitBytes: number): Promise<RequestBody> {
    const contentType = this.headers['content-type']
    this.#read ??= this.#arrived.readBody(limitBytes)
    const bytes = await this.#read
    this.bodyBytes = bytes.length
    return { type: 'bytes', bytes, contentType: typeof contentType === 'string' ? contentType : '' }
  }
}

function decodePath(raw: string): string {
  const path = raw.includes('%') ? decode(raw) : raw
  // Dot segments never name a resource, and decoded slashes and dots must not change the path that is authorized.
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

export function bodyEndedEarly(): StatusError {
  return badRequest('the request body ended early')
}

export function bodyTooLarge(limitBytes: number): StatusError {
  return new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`)
}
