/**
 * Streams a request to a backend and its answer back (L3). Bodies are streamed in both directions; with a prefix, links to the backend's root are
 * rewritten to paths of the proxy.
 * Upstream: apimachinery/pkg/util/proxy/upgradeaware.go (ServeHTTP), transport.go.
 */

import type { IncomingMessage } from 'node:http'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip, createGzip } from 'node:zlib'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type Answer, textAnswer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import { authority, type Backend } from './backend.ts'
import { open } from './connect.ts'
import { type HeaderMap, responseHeaders } from './forwardedHeaders.ts'
import { linkRewriter, rewriteLink } from './links.ts'

/** Callers in this process hand a value over, not a stream. */
const inProcessBodyBytes = 64 * 1024 * 1024

/** @throws ServiceUnavailable when the backend does not answer */
export async function proxyPlain(request: ServerRequest, backend: Backend): Promise<Answer> {
  const response = await open(request, backend, request.inProcessUser ? await valueBody(request) : request.body)
  const status = response.statusCode ?? 0
  if (status < leastStatus) return badGateway(response, status)
  const headers = responseHeaders(response.headers)
  // A length without its body breaks a stream of HTTP/2.
  if (status === 204) delete headers['content-length']
  const body = backend.prefix === undefined ? response : rewritten(request, backend.prefix, backend, response, headers)
  return { type: 'stream', status, headers, body }
}

/** A final answer has no lower one, and this server could not send it. Upstream: Go's server panics over it and breaks the connection off. */
const leastStatus = 200

function badGateway(response: IncomingMessage, status: number): Answer {
  response.destroy()
  return textAnswer(502, `the backend answered with the status ${String(status).padStart(3, '0')}\n`)
}

async function valueBody(request: ServerRequest): Promise<Buffer | undefined> {
  const body = await request.readBody(inProcessBodyBytes)
  if (body.type === 'bytes') return body.bytes
  return body.value === undefined ? undefined : Buffer.from(stringifyExactly(body.value))
}

function rewritten(request: ServerRequest, prefix: string, backend: Backend, response: IncomingMessage, headers: HeaderMap): Readable {
  const base = { prefix, backendHost: authority(backend), requestHost: String(request.headers.host ?? '') }
  if (typeof headers.location === 'string') {
    headers.location = rewriteLink(headers.location, base)
    return response
  }
  const type = String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim()
  const encoding = headers['content-encoding']
  // Whatever else it is packed in, we cannot look inside.
  if (type !== 'text/html' || request.method === 'HEAD' || (encoding !== undefined && encoding !== 'gzip')) return response
  delete headers['content-length']
  const steps = encoding === 'gzip' ? [createGunzip(), linkRewriter(base), createGzip()] : [linkRewriter(base)]
  // A failure on the way reaches the reader of the last step, which is destroyed with it.
  return pipeline([response, ...steps], () => undefined) as unknown as Readable
}
