/** The proxy's own answers, and the way of an answer's headers to a client of either protocol (L3). */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { constants, type Http2ServerResponse } from 'node:http2'
import { asObject, type RawHeaders } from './headers.ts'

export type ClientResponse = ServerResponse | Http2ServerResponse

/** As the default backend of ingress-nginx answers. */
const texts: Readonly<Record<number, string>> = { 404: 'default backend - 404' }

const noContent = 204

export function bodyOf(status: number): string {
  return texts[status] ?? `${status} ${STATUS_CODES[status] ?? ''}\n`
}

/** @param close the connection serves no other request afterwards @param headers in addition */
export function answer(response: ClientResponse, status: number, close = false, headers: RawHeaders = []): void {
  if (response.headersSent || response.destroyed) {
    cut(response)
    return
  }
  if (status === noContent) {
    start(response, status, undefined, headers, close)
    response.end()
    return
  }
  const body = bodyOf(status)
  start(response, status, undefined, ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(Buffer.byteLength(body)), ...headers], close)
  response.end(body)
}

/** Writes the head of an answer. */
export function start(response: ClientResponse, status: number, reason: string | undefined, headers: RawHeaders, close: boolean): void {
  if ('stream' in response) {
    response.writeHead(status, asObject(headers))
    return
  }
  // An array keeps order, spelling and repetitions.
  const all = close ? [...headers, 'Connection', 'close'] : [...headers]
  response.writeHead(status, reason || STATUS_CODES[status] || '', all)
}

/** Ends an answer so that the client does not take it for whole. */
export function cut(response: ClientResponse): void {
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR)
  else response.destroy()
}
