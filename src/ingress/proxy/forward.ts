/**
 * Sends one request to an endpoint and its answer back (L3). Bodies flow at the speed of the slower side. Another endpoint is tried when a connection could
 * not be made, because then nothing has been sent; or when a kept connection was closed under an idempotent request without a body, as a server may do at any time.
 */
import type { ClientRequest as BackendRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Timer } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'
import { answer, type ClientResponse, cut, start } from './answer.ts'
import { onReady, requestTo } from './backendRequest.ts'
import { cutWhenStuck } from './cutWhenStuck.ts'
import { forwardH2c } from './forwardH2c.ts'
import { type Framing, requestHeaders, responseHeaders } from './headers.ts'
import { type Mirrors, startMirrors } from './mirror.ts'
import type { Entrance, ProxyDeps } from './proxyDeps.ts'
import { type ClientRequest, type Destination, destinationOf, type Refusal } from './target.ts'

const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
const maxAttempts = 3
/** nginx' lingering_time. */
const lingerMs = 30_000

/** A final answer has no lower one. */
const leastStatus = 200

export class TimedOut extends Error {}

/** Serves one request that is no upgrade. */
export function serve(deps: ProxyDeps, entrance: Entrance, request: ClientRequest, response: ClientResponse): void {
  const startedMs = deps.clock.monotonicMs()
  deps.metrics.inFlight.add(1)
  let endpoint: Endpoint | undefined
  response.once('close', () => {
    deps.metrics.inFlight.add(-1)
    deps.metrics.requests(response.statusCode).inc()
    deps.metrics.duration.observe((deps.clock.monotonicMs() - startedMs) / 1000)
    logAccess(deps, request, response, endpoint, startedMs)
  })
  request.on('error', () => {})
  response.on('error', () => {})
  const destination = destinationOf(request, entrance, deps)
  response.once('finish', () => linger(deps, request))
  if (!('backend' in destination)) {
    refuseBy(deps, response, destination)
    return
  }
  const onChosen = (chosen: Endpoint) => {
    endpoint = chosen
  }
  if (destination.route.backend?.protocol === 'h2') {
    const origin = originOf(entrance, request, destination)
    forwardH2c({ deps, request, response, destination, origin, hasBody: framingOf(request) !== 'none' }, onChosen)
  } else new Forwarding(deps, entrance, request, response, destination).attempt(onChosen)
}

/** A Location can have what the client wrote, and HTTP/2 allows more than a header of HTTP/1.1. */
function refuseBy(deps: ProxyDeps, response: ClientResponse, { status, headers }: Refusal): void {
  try {
    answer(response, status, deps.isDraining(), headers)
  } catch {
    answer(response, 400, deps.isDraining())
  }
}

class Forwarding {
  readonly #deps: ProxyDeps
  readonly #entrance: Entrance
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #destination: Destination
  readonly #framing: Framing
  readonly #tried: Endpoint[] = []
  #outgoing: BackendRequest | undefined
  #mirrors: Mirrors | undefined
  #isOver = false

  constructor(deps: ProxyDeps, entrance: Entrance, request: ClientRequest, response: ClientResponse, destination: Destination) {
    this.#deps = deps
    this.#entrance = entrance
    this.#request = request
    this.#response = response
    this.#destination = destination
    this.#framing = framingOf(request)
    const { backend, route } = destination
    backend.inFlight++
    const limit = route.timeoutMs === undefined ? undefined : deps.clock.timer(route.timeoutMs, () => this.#expire())
    response.once('close', () => {
      limit?.cancel()
      this.#mirrors?.abandon()
      this.#isOver = true
      backend.inFlight--
      // Either all has been read, or the client is gone.
      if (!this.#outgoing?.destroyed) this.#outgoing?.destroy()
    })
  }

  attempt(onChosen: (endpoint: Endpoint) => void): void {
    const { backend, target, route } = this.#destination
    const { limits } = this.#deps
    const isTooLarge = typeof this.#framing === 'object' && Number(this.#framing.length) > limits.maxBodyBytes
    const endpoint = isTooLarge ? undefined : backend.pick(this.#tried)
    if (!endpoint) {
      this.#refuse(isTooLarge ? 413 : 503)
      return
    }
    onChosen(endpoint)
    const isFirst = this.#tried.length === 0
    this.#tried.push(endpoint)
    let outgoing: BackendRequest
    try {
      const origin = originOf(this.#entrance, this.#request, this.#destination)
      outgoing = requestTo(this.#deps, endpoint, this.#destination.tls, {
        method: this.#request.method,
        path: target.url,
        headers: requestHeaders(this.#request.rawHeaders, origin, this.#framing, route.requestHeaders),
        isFresh: !isFirst,
      })
    } catch {
      // HTTP/2 allows characters that HTTP/1.1 does not.
      this.#refuse(400)
      return
    }
    this.#outgoing = outgoing
    const limit = route.backendTimeoutMs === undefined ? undefined : this.#deps.clock.timer(route.backendTimeoutMs, () => outgoing.destroy(new TimedOut()))
    outgoing.once('close', () => limit?.cancel())
    let connected = false
    outgoing.once('socket', (socket) => {
      whenConnected(this.#deps, socket, outgoing, () => {
        connected = true
        this.#sendBody(outgoing)
      })
    })
    outgoing.once('response', (incoming) => {
      backend.succeeded(endpoint)
      this.#sendBack(incoming)
    })
    // The client has asked for no other protocol.
    outgoing.once('upgrade', (_incoming, connection) => {
      connection.destroy()
      this.#refuse(502)
    })
    outgoing.once('error', (error) => {
      if (this.#isOver) return
      if (!connected) backend.avoid(endpoint)
      if (this.#response.headersSent) cut(this.#response)
      else if (!this.#mayRetry(connected, outgoing, error)) this.#refuse(error instanceof TimedOut ? 504 : 502)
      else {
        this.#deps.metrics.retries.inc()
        this.attempt(onChosen)
      }
    })
    if (this.#framing === 'none') outgoing.end()
    else outgoing.flushHeaders()
  }

  #mayRetry(connected: boolean, outgoing: BackendRequest, error: Error): boolean {
    if (this.#tried.length >= maxAttempts) return false
    if (!connected) return this.#destination.backend.size > 1 || this.#tried.length === 1
    const wasClosed = outgoing.reusedSocket && !(error instanceof TimedOut)
    return wasClosed && this.#framing === 'none' && idempotent.has(this.#request.method ?? '')
  }

  #expire(): void {
    this.#isOver = true
    this.#outgoing?.destroy()
    this.#refuse(504)
  }

  /** Not before the connection is made: what is not sent yet can go to another endpoint. */
  #sendBody(outgoing: BackendRequest): void {
    const { target, route } = this.#destination
    if (route.mirrors?.length && !this.#mirrors) {
      const { rawHeaders, method } = this.#request
      const headers = requestHeaders(rawHeaders, originOf(this.#entrance, this.#request, this.#destination), this.#framing, route.requestHeaders)
      this.#mirrors = startMirrors(this.#deps, route.mirrors, { method, path: target.url, headers })
      this.#mirrors.send(this.#framing === 'none' ? undefined : this.#request)
    }
    if (this.#framing === 'none') return
    const { maxBodyBytes } = this.#deps.limits
    let bytes = 0
    if (this.#framing === 'chunked') {
      this.#request.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= maxBodyBytes || this.#isOver) return
        this.#request.unpipe(outgoing)
        this.#isOver = true
        outgoing.destroy()
        this.#refuse(413)
      })
    }
    // A client that goes away must not end the body as if it were whole.
    this.#request.once('aborted', () => outgoing.destroy())
    this.#request.pipe(outgoing)
  }

  #sendBack(incoming: IncomingMessage): void {
    const response = this.#response
    const { statusCode = 502, statusMessage, rawHeaders } = incoming
    incoming.on('error', () => cut(response))
    if (this.#isOver || response.destroyed) return
    try {
      if (statusCode < leastStatus) throw new Error(`the status ${statusCode} is none of a final answer`)
      start(response, statusCode, statusMessage, responseHeaders(rawHeaders, this.#destination.route.responseHeaders), this.#deps.isDraining())
    } catch {
      this.#refuse(502)
      this.#outgoing?.destroy()
      return
    }
    incoming.once('aborted', () => cut(response))
    if ('stream' in response) cutWhenStuck(this.#deps, incoming, response)
    incoming.pipe(response as NodeJS.WritableStream)
  }

  #refuse(status: number): void {
    answer(this.#response, status, this.#deps.isDraining())
  }
}

/** Reads and drops the rest of a body that was answered early, for a while: a connection that is closed under a sender can lose the answer. */
function linger({ clock }: ProxyDeps, request: ClientRequest): void {
  if (request.complete || request.destroyed) return
  request.unpipe()
  request.resume()
  const limit = clock.timer(lingerMs, () => {
    if (!request.complete) request.destroy()
  })
  request.once('close', () => limit.cancel())
}

/** Calls `then` once the socket is connected, over TLS after the handshake; fails the request when that takes too long, or when the backend is silent for too long later. */
export function whenConnected({ clock, limits }: ProxyDeps, socket: Socket, outgoing: BackendRequest, then: () => void): void {
  outgoing.setTimeout(limits.readTimeoutMs, () => outgoing.destroy(new TimedOut('the backend is silent')))
  const limit: Timer = clock.timer(limits.connectTimeoutMs, () => outgoing.destroy(new TimedOut('the endpoint cannot be connected to')))
  onReady(outgoing, socket, () => {
    limit.cancel()
    then()
  })
  outgoing.once('close', () => limit.cancel())
}

export function originOf(entrance: Entrance, request: ClientRequest, { target }: Destination) {
  const orLocalhost = (authority: string) => (authority === '' ? 'localhost' : authority)
  return { ...entrance, authority: orLocalhost(target.authority), askedAuthority: orLocalhost(target.askedAuthority), remoteAddress: addressOf(request) }
}

function addressOf(request: ClientRequest): string {
  return (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '')
}

function framingOf(request: ClientRequest): Framing {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if ('stream' in request) {
    if (request.stream.endAfterHeaders) return 'none'
    return length === undefined ? 'chunked' : { length }
  }
  if (encoding !== undefined) return 'chunked'
  return length !== undefined && Number(length) > 0 ? { length } : 'none'
}

function logAccess(deps: ProxyDeps, request: ClientRequest, response: ClientResponse, endpoint: Endpoint | undefined, startedMs: number): void {
  const log = deps.log.v(4)
  if (log.enabled === false) return
  log.info('Request', {
    client: addressOf(request),
    method: request.method,
    host: request.headers[':authority'] ?? request.headers.host,
    url: request.url,
    status: response.statusCode,
    endpoint: endpoint && `${endpoint.ip}:${endpoint.port}`,
    ms: Math.round(deps.clock.monotonicMs() - startedMs),
  })
}
