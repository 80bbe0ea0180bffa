/**
 * From what arrived on a connection to a ServerRequest (L3), the same for HTTP/2 and HTTP/1.1.
 */
import type { Readable } from 'node:stream'
import { badRequest, StatusError } from '#api/machinery/status'
import type { PeerCertificate, RequestBody, ServerRequest, TraceEntry } from '../request.ts'

export interface Incoming {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Lower-case names, without HTTP/2's pseudo headers. */
  readonly headers: ServerRequest['headers']
  readonly body: Readable
  /** Whether a body was announced. */
  readonly hasBody: boolean
  readonly remoteAddress: string
  readonly peerCertificate: PeerCertificate | undefined
  readonly signal: AbortSignal
  readonly isHttp2: boolean
  readonly trace?: TraceEntry[] | undefined
}

/** @throws BadRequest for a path that does not decode or climbs */
export function serverRequest(incoming: Incoming): ServerRequest {
  const { url, headers, body } = incoming
  const question = url.indexOf('?')
  const path = decodePath(question < 0 ? url : url.slice(0, question))
  const rawQuery = question < 0 ? '' : url.slice(question + 1)
  const contentType = headers['content-type']
  let read: Promise<Buffer> | undefined
  return {
    method: incoming.method,
    path,
    query: new URLSearchParams(rawQuery),
    rawQuery,
    headers,
    remoteAddress: incoming.remoteAddress,
    peerCertificate: incoming.peerCertificate,
    isHttp2: incoming.isHttp2,
    responseHeaders: {},
    receivedMs: 0,
    signal: incoming.signal,
    async readBody(limitBytes): Promise<RequestBody> {
      read ??= readAll(body, limitBytes, Number(headers['content-length'] ?? 0))
      return { type: 'bytes', bytes: await read, contentType: typeof contentType === 'string' ? contentType : '' }
    },
    body: incoming.hasBody ? body : undefined,
    warnings: [],
    trace: incoming.trace,
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

function readAll(body: Readable, limitBytes: number, announced: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = () => new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`)
    if (announced > limitBytes) {
      body.resume()
      reject(tooLarge())
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
      if (!body.readableEnded) reject(badRequest('the request body ended early'))
    })
  })
}
