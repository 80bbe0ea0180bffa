/**
 * Sends one request over HTTP/2 and its answer back (L3), with the trailers that gRPC needs. Another endpoint is tried when a connection could not
 * be made, because then nothing has been sent.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import type { Timer } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'
import { answer, type ClientResponse, cut, start } from './answer.ts'
import { cutWhenStuck } from './cutWhenStuck.ts'
import type { TakenSession } from './h2Sessions.ts'
import { asObject, type Origin, requestHeaders, responseHeaders } from './headers.ts'
import type { ProxyDeps } from './proxyDeps.ts'
import type { ClientRequest, Destination } from './target.ts'

const maxAttempts = 3
const [leastStatus, mostStatus] = [200, 599]
/** Framed by HTTP/2 itself, or named by a pseudo header. */
const unsent: ReadonlySet<string> = new Set(['host', 'transfer-encoding'])

export interface H2cForwarding {
  readonly deps: ProxyDeps
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly destination: Destination
  readonly origin: Origin
  readonly hasBody: boolean
}

export function forwardH2c(forwarding: H2cForwarding, onChosen: (endpoint: Endpoint) => void): void {
  const { deps, response, destination } = forwarding
  const { backend, route } = destination
  const { timeoutMs } = route
  let stream: ClientHttp2Stream | undefined
  const expire = () => {
    refuse(forwarding, 504)
    stream?.close(constants.NGHTTP2_CANCEL)
  }
  const limit = timeoutMs === undefined ? undefined : deps.clock.timer(timeoutMs, expire)
  backend.inFlight++
  response.once('close', () => {
    backend.inFlight--
    limit?.cancel()
    stream?.close(constants.NGHTTP2_CANCEL)
  })
  const attempt = async (tried: readonly Endpoint[]): Promise<void> => {
    const endpoint = backend.pick(tried)
    if (!endpoint) {
      refuse(forwarding, 503)
      return
    }
    onChosen(endpoint)
    const taken = await deps.h2Sessions.take(endpoint, destination.tls).catch(() => undefined)
    const isOver = response.headersSent || response.destroyed
    if (isOver) taken?.release()
    else if (taken) stream = send(forwarding, endpoint, taken)
    else {
      backend.avoid(endpoint)
      if (tried.length + 1 < maxAttempts) await attempt([...tried, endpoint])
      else refuse(forwarding, 502)
    }
  }
  void attempt([])
}

function send(forwarding: H2cForwarding, endpoint: Endpoint, { session, release }: TakenSession): ClientHttp2Stream | undefined {
  const { deps, request, response, destination, hasBody } = forwarding
  let stream: ClientHttp2Stream
  try {
    stream = session.request(headersOf(forwarding), { endStream: !hasBody })
  } catch {
    release()
    refuse(forwarding, 502)
    return undefined
  }
  const { backendTimeoutMs } = destination.route
  const timers: Timer[] = []
  const expire = () => {
    refuse(forwarding, 504)
    stream.close(constants.NGHTTP2_CANCEL)
  }
  if (backendTimeoutMs !== undefined) timers.push(deps.clock.timer(backendTimeoutMs, expire))
  // Calls of gRPC may be silent for long, as WebSockets are.
  const isGrpc = String(request.headers['content-type']).startsWith('application/grpc')
  stream.setTimeout(isGrpc ? deps.limits.tunnelIdleMs : deps.limits.readTimeoutMs, expire)
  if (hasBody) sendLimited(forwarding, stream)
  let isWhole = false
  stream.once('response', (headers, flags) => {
    destination.backend.succeeded(endpoint)
    isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    try {
      sendBack(forwarding, stream, headers, isWhole)
    } catch {
      // The backend may answer with what HTTP/1.1 does not allow.
      refuse(forwarding, 502)
      stream.close(constants.NGHTTP2_CANCEL)
    }
  })
  stream.on('error', () => {})
  stream.once('close', () => {
    for (const timer of timers) timer.cancel()
    release()
    if (!isWhole && !response.writableEnded && !response.destroyed) refuse(forwarding, 502)
  })
  return stream
}

function headersOf({ request, destination, origin }: H2cForwarding): Record<string, string | string[]> {
  const all = asObject(requestHeaders(request.rawHeaders, origin, 'none', destination.route.requestHeaders))
  const kept = Object.fromEntries(Object.entries(all).filter(([name]) => !unsent.has(name)))
  return {
    ...kept,
    ...(/\btrailers\b/i.test(String(request.headers.te ?? '')) ? { te: 'trailers' } : {}),
    ':method': request.method ?? 'GET',
    ':path': destination.target.url,
    ':scheme': destination.tls ? 'https' : 'http',
    ':authority': origin.authority,
  }
}

function sendLimited(forwarding: H2cForwarding, stream: ClientHttp2Stream): void {
  const { deps, request } = forwarding
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= deps.limits.maxBodyBytes) return
    request.unpipe(stream)
    refuse(forwarding, 413)
    stream.close(constants.NGHTTP2_CANCEL)
  })
  request.once('aborted', () => stream.close(constants.NGHTTP2_CANCEL))
  request.pipe(stream)
}

function sendBack({ deps, response, destination }: H2cForwarding, stream: ClientHttp2Stream, headers: IncomingHttpHeaders, isWhole: boolean): void {
  if (response.headersSent || response.destroyed) return
  const status = Number(headers[':status'])
  if (!(status >= leastStatus && status <= mostStatus)) throw new Error(`the status ${status} is none of a final answer`)
  const all = responseHeaders(listed(headers), destination.route.responseHeaders)
  if (isWhole && 'stream' in response) {
    // A call of gRPC that fails at once: its client reads the status from headers that end the stream.
    response.statusCode = status
    response.stream.respond({ ...asObject(all), ':status': status }, { endStream: true })
    // What the client still sends is of no use.
    if (!response.stream.closed && !response.req.complete) response.stream.close(constants.NGHTTP2_NO_ERROR)
    return
  }
  start(response, status, undefined, all, deps.isDraining())
  let trailers: IncomingHttpHeaders = {}
  stream.once('trailers', (found) => {
    trailers = found
  })
  stream.once('end', () => {
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
      cut(response)
      return
    }
    try {
      response.addTrailers(asObject(responseHeaders(listed(trailers))) as Record<string, string>)
      response.end()
    } catch {
      cut(response)
    }
  })
  if ('stream' in response) cutWhenStuck(deps, stream, response)
  stream.pipe(response as NodeJS.WritableStream, { end: false })
}

/** Names and values in turn. */
function listed(headers: IncomingHttpHeaders): string[] {
  return Object.entries(headers).flatMap(([name, value]) => (name.startsWith(':') ? [] : [value ?? ''].flat().flatMap((one) => [name, one])))
}

function refuse({ deps, response }: H2cForwarding, status: number): void {
  answer(response, status, deps.isDraining())
}
