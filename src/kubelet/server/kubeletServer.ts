/**
 * The kubelet's own HTTPS API (L3), for the API server, metrics pipelines and operators. Every request is authenticated and authorized.
 * In order: identify.ts authenticates, auth.ts authorizes, routes.ts answers plain requests (logs.ts, systemLogs.ts, stats/), streams.ts serves exec, attach
 * and port-forward, requestMetrics.ts counts.
 * Upstream: kubelet/server/server.go (v1.36).
 */

import { createServer as createPlainServer, type Server as HttpServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContextOptions, SecureVersion } from 'node:tls'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { type Metrics, noMetrics } from '#base/metrics'
import { aborted } from '#base/orAborted'
import { hangUp } from '#streaming/hangUp'
import { refuse } from '#streaming/upgrade'
import type { ConfigurationDocument } from '../configuration/document.ts'
import type { KubeletView } from '../core/kubeletView.ts'
import { attributesOf, type KubeletAuth } from './auth.ts'
import { HttpError } from './httpError.ts'
import { createIdentifier } from './identify.ts'
import { createRequestMetrics, createStreamMetrics, type RequestMetrics } from './requestMetrics.ts'
import { contentTypes, createRoutes, debuggingDisabled, type Page, type Routes } from './routes.ts'

export interface KubeletServerDeps {
  readonly view: KubeletView
  readonly auth: KubeletAuth
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: Metrics | undefined
  /** The text of /metrics. */
  readonly metricsText?: (() => string | Promise<string>) | undefined
  /** What /configz shows; absent: what the kubelet works with, and defaults. */
  readonly configuration?: ConfigurationDocument | undefined
  /** More pages by path: /statusz, /flagz, /debug/pprof. Undefined: there is no such page. */
  readonly pages?: ((request: IncomingMessage) => Promise<Page | undefined>) | undefined
  /** Called before a request that is authenticated and authorized is answered. */
  readonly onAdmitted?: (() => Promise<void>) | undefined
}

export interface KubeletServerConfig extends KubeletServerTls {
  readonly address?: string | undefined
  /** 0: any free one. */
  readonly port: number
}

/** PEM. */
export interface KubeletServerTls {
  readonly cert: string | Buffer
  readonly key: string | Buffer
  /** Client certificates of this authority are believed. */
  readonly clientCa?: string | Buffer | undefined
  /** The oldest that is spoken; default TLSv1.2. */
  readonly minVersion?: SecureVersion | undefined
  /** Cipher suites of all versions, by OpenSSL's names; absent: the defaults of Node.js. */
  readonly ciphers?: readonly string[] | undefined
  /** What keys are exchanged with, as OpenSSL names the groups; absent: what Node offers. */
  readonly curves?: readonly string[] | undefined
}

export interface KubeletServer extends Component {
  /** Resolves with the port once it listens. */
  readonly listening: Promise<number>
  /** For connections from now on. */
  setTls(tls: KubeletServerTls): void
}

function contextOf({ cert, key, clientCa, minVersion = 'TLSv1.2', ciphers, curves }: KubeletServerTls): SecureContextOptions {
  const groups = curves ? { ecdhCurve: curves.join(':') } : {}
  // An empty list: without one, Node would trust every public certificate authority.
  return { cert, key, minVersion, ...groups, ca: clientCa ?? [], ...(ciphers ? { ciphers: ciphers.join(':') } : {}) }
}

export function createKubeletServer(deps: KubeletServerDeps, config: KubeletServerConfig): KubeletServer {
  return httpsServer('kubelet-server', config, (signal) => {
    const handlers = handlersOf(deps, signal)
    return () => handlers
  })
}

type HandlersOf = (request: IncomingMessage) => Handlers

/** @param handlersWith chooses who answers a request, until the signal aborts */
export function httpsServer(name: string, config: KubeletServerConfig, handlersWith: (signal: AbortSignal) => HandlersOf): KubeletServer {
  let markListening = (_port: number) => {}
  let markFailed = (_error: unknown) => {}
  const listening = new Promise<number>((resolve, reject) => {
    markListening = resolve
    markFailed = reject
  })
  // Without a call of port(), run() reports the failure.
  listening.catch(() => {})
  let tls: KubeletServerTls = config
  let server: Server | undefined
  return {
    name,
    listening,
    setTls(renewed) {
      tls = renewed
      server?.setSecureContext(contextOf(tls))
    },
    run: async (stop) => {
      // Its own signal, because every stream listens to it.
      using scope = abortScope(stop)
      const { signal } = scope
      const own = createServer({ ...contextOf(tls), ...(tls.clientCa ? { requestCert: true, rejectUnauthorized: false } : {}) })
      server = own
      attach(own, handlersWith(signal))
      try {
        await listen(own, config.port, config.address, markListening, signal)
      } catch (error) {
        markFailed(error)
        throw error
      }
    },
  }
}

/** Answers the requests for one node. */
export interface Handlers {
  request(request: IncomingMessage, response: ServerResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

function attach(server: Server, handlersFor: HandlersOf): void {
  server.on('request', (request: IncomingMessage, response: ServerResponse) => handlersFor(request).request(request, response))
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {})
    handlersFor(request).upgrade(request, socket, head)
  })
}

function plainHandler(deps: PlainDeps, measure: RequestMetrics, signal: AbortSignal): Handlers['request'] {
  const routes = createRoutes(deps)
  return (request, response) => {
    const ended = measure(request.method ?? '', request.url?.split('?')[0] ?? '')
    answerPlain(deps, routes, request, response, signal)
      .catch((error: unknown) => deps.log.v(2).info('Request failed', { path: request.url, error: String(error) }))
      .finally(ended)
  }
}

/** Listens until aborted. @throws Error when it cannot */
async function listen(
  server: Server | HttpServer,
  port: number,
  address: string | undefined,
  onPort: (port: number) => void,
  signal: AbortSignal,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, address, () => resolve())
  })
  onPort((server.address() as AddressInfo).port)
  await aborted(signal)
  server.closeAllConnections()
  await new Promise<void>((resolve) => server.close(() => resolve()))
}

export interface ReadOnlyServer extends Component {
  /** Resolves with the port once it listens. */
  readonly listening: Promise<number>
}

/** The read-only server: health, pods and metrics over plain HTTP without authentication. Off unless readOnlyPort is set. */
export function createReadOnlyServer(deps: Omit<KubeletServerDeps, 'auth'>, config: { readonly address?: string; readonly port: number }): ReadOnlyServer {
  let markListening = (_port: number) => {}
  const listening = new Promise<number>((resolve) => {
    markListening = resolve
  })
  return {
    name: 'kubelet-read-only-server',
    listening,
    run: async (signal) => {
      const server = createPlainServer()
      const auth: KubeletAuth = { anonymous: true, authenticateToken: async () => undefined, authorize: async () => false }
      const measure = createRequestMetrics(deps.metrics ?? noMetrics, deps.clock, 'readonly')
      server.on('request', plainHandler({ ...deps, auth, identify: async () => undefined, readOnly: true }, measure, signal))
      await listen(server, config.port, config.address, markListening, signal)
    },
  }
}

/** Answers requests of one node, until the signal aborts. */
export function handlersOf(given: KubeletServerDeps, signal: AbortSignal): Handlers {
  const deps = { ...given, identify: createIdentifier(given) }
  const measure = createRequestMetrics(deps.metrics ?? noMetrics, deps.clock)
  // Metrics of containers have cAdvisor's names, from any source.
  const provider = { name: 'kubelet_metrics_provider', help: 'Whose names metrics of containers have.', labels: ['provider'] }
  deps.metrics?.gauge(provider).set(1, { provider: 'cadvisor' })
  const noteStream = createStreamMetrics(deps.metrics ?? noMetrics)
  const upgrade: Handlers['upgrade'] = (request, socket, head) => {
    // An upgraded connection is no longer the server's to close.
    const onAbort = () => socket.destroy()
    signal.addEventListener('abort', onAbort, { once: true })
    const ended = measure(request.method ?? '', request.url?.split('?')[0] ?? '')
    socket.once('close', () => {
      signal.removeEventListener('abort', onAbort)
      ended()
    })
    answerUpgrade(deps, noteStream, request, socket, head).catch((error: unknown) => {
      // An answer may still be on its way to the client.
      hangUp(socket, deps.clock)
      deps.log.v(2).info('Stream failed', { path: request.url, error: String(error) })
    })
  }
  return { request: plainHandler(deps, measure, signal), upgrade }
}

type Identify = ReturnType<typeof createIdentifier>
type Admitting = KubeletServerDeps & { readonly identify: Identify }

/** @throws HttpError 401, 403, or 500 when the API server could not be asked */
async function admit(deps: Admitting, request: IncomingMessage, pathname: string): Promise<void> {
  const user = await deps.identify(request)
  if (!user) throw new HttpError(401, 'Unauthorized')
  const wanted = attributesOf(request.method ?? 'GET', pathname)
  const who = `user=${user.name}, verb=${wanted[0]?.verb}, resource=nodes`
  for (const attributes of wanted) {
    const { subresource } = attributes
    const allowed = await deps.auth.authorize(user, attributes).catch((error: unknown) => {
      deps.log.error(error, 'Authorization error', { user: user.name, path: pathname, subresource })
      throw new HttpError(500, `Authorization error (${who}, subresource=${subresource})`)
    })
    if (allowed) return deps.onAdmitted?.()
  }
  deps.log.v(2).info('Forbidden', { user: user.name, path: pathname })
  throw new HttpError(403, `Forbidden (${who}, subresource(s)=[${wanted.map(({ subresource }) => subresource).join(' ')}])\n`)
}

/** `readOnly`: requests are not authenticated, and only public paths are served. */
type PlainDeps = Admitting & { readonly readOnly?: boolean | undefined }

/** @throws HttpError 400 for a path that cannot be decoded */
function locate(request: IncomingMessage) {
  try {
    const url = new URL(request.url ?? '/', 'https://kubelet')
    const segments = url.pathname.split('/').filter(Boolean).map(decodeURIComponent)
    // The authorized path is the one that the routes use: decoded, without empty segments.
    return { pathname: `/${segments.join('/')}`, segments, query: url.searchParams }
  } catch {
    throw new HttpError(400, 'the path of the request cannot be decoded')
  }
}

async function answerPlain(deps: PlainDeps, routes: Routes, request: IncomingMessage, response: ServerResponse, stop: AbortSignal): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  using ended = abortScope(gone.signal, stop)
  try {
    const { pathname, segments, query } = locate(request)
    if (!deps.readOnly) await admit(deps, request, pathname)
    const answer = await routes({ request, method: request.method ?? 'GET', segments, query, signal: ended.signal })
    await send(response, answer, gone.signal)
  } catch (error) {
    if (response.headersSent) {
      response.destroy()
      return
    }
    response.statusCode = error instanceof HttpError ? error.code : 500
    if (error instanceof HttpError) for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
    response.setHeader('Content-Type', contentTypes.text)
    response.end(messageOf(error))
  }
}

async function send(response: ServerResponse, { type, body, code = 200 }: Page, gone: AbortSignal): Promise<void> {
  response.statusCode = code
  response.setHeader('Content-Type', Object.hasOwn(contentTypes, type) ? contentTypes[type as keyof typeof contentTypes] : type)
  if (typeof body === 'string' || body instanceof Uint8Array) {
    response.end(body)
    return
  }
  response.flushHeaders()
  for await (const chunk of body) {
    // A response emits "close" once: waiting for it after the client has left would keep the body open.
    if (gone.aborted) break
    if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
  }
  response.end()
}

type NoteStream = ReturnType<typeof createStreamMetrics>

async function answerUpgrade(deps: Admitting, noteStream: NoteStream, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const upgrade = { request, socket, head }
  try {
    if (announcesBody(request)) throw new HttpError(400, 'an upgrade request must not have a body')
    const { pathname, segments, query } = locate(request)
    await admit(deps, request, pathname)
    const [what = '', ...path] = segments
    if (!['exec', 'attach', 'portForward'].includes(what)) throw new HttpError(404, '404 page not found')
    // Another method would be authorized as another verb, which does not cover running commands.
    if (request.method !== 'GET' && request.method !== 'POST') throw new HttpError(405, '405: Method Not Allowed')
    if (!deps.view.config.enableDebuggingHandlers) throw debuggingDisabled()
    noteStream(what, request.headers)
    // Loaded by the first who streams: most nodes never see one.
    const { portForward, remoteCommand } = await import('./streams.ts')
    if (what === 'portForward') await portForward(deps.view, path, query, upgrade)
    else await remoteCommand(deps.view, what as 'exec' | 'attach', path, query, upgrade)
  } catch (error) {
    if (error instanceof HttpError) answerError(upgrade, error)
    throw error
  }
}

/** Node takes a body for the first bytes of the new protocol. */
function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

function answerError(upgrade: Parameters<typeof refuse>[0], error: HttpError): void {
  if (error.code === 400 || error.code === 403) {
    refuse(upgrade, error.code, error.message)
    return
  }
  const body = error.message
  upgrade.socket.end(
    `HTTP/1.1 ${error.code} ${STATUS_CODES[error.code] ?? ''}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
