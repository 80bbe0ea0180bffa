/**
 * The kubelet's own HTTPS API (L3): what the API server, metrics pipelines and operators ask a node. Every request but none is authenticated
 * and authorized. Upstream: kubelet/server/server.go (v1.36).
 */
import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { refuse } from '#streaming/upgrade'
import type { KubeletView } from '../kubelet.ts'
import { attributesOf, type KubeletAuth, type KubeletUser } from './auth.ts'
import { HttpError } from './httpError.ts'
import { containerLog } from './logs.ts'
import { createStatsProvider } from './stats.ts'
import { portForward, remoteCommand } from './streams.ts'

export interface KubeletServerDeps {
  readonly view: KubeletView
  readonly auth: KubeletAuth
  readonly clock: Clock
  readonly log: Logger
  /** The text of /metrics. */
  readonly metricsText?: (() => string) | undefined
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
}

export interface KubeletServer extends Component {
  /** Resolves with the port once it listens. */
  readonly listening: Promise<number>
  /** For connections from now on. */
  setTls(tls: KubeletServerTls): void
}

function contextOf({ cert, key, clientCa }: KubeletServerTls): SecureContextOptions {
  return { cert, key, ...(clientCa ? { ca: clientCa } : {}) }
}

interface Route {
  readonly path: readonly string[]
  readonly query: URLSearchParams
  readonly signal: AbortSignal
}

type Answer = { readonly type: 'text' | 'json' | 'metrics'; readonly body: string } | { readonly type: 'stream'; readonly body: AsyncIterable<Uint8Array> }

const contentTypes = {
  text: 'text/plain; charset=utf-8',
  json: 'application/json',
  metrics: 'text/plain; version=0.0.4; charset=utf-8',
  stream: 'text/plain',
} as const

export function createKubeletServer(deps: KubeletServerDeps, config: KubeletServerConfig): KubeletServer {
  let markListening = (_port: number) => {}
  let markFailed = (_error: unknown) => {}
  const listening = new Promise<number>((resolve, reject) => {
    markListening = resolve
    markFailed = reject
  })
  // Whoever does not ask for the port hears of the failure from run().
  listening.catch(() => {})
  let tls: KubeletServerTls = config
  let server: Server | undefined
  return {
    name: 'kubelet-server',
    listening,
    setTls(renewed) {
      tls = renewed
      server?.setSecureContext(contextOf(tls))
    },
    run: async (stop) => {
      // Its own signal, because every stream listens to it.
      const signal = AbortSignal.any([stop])
      setMaxListeners(0, signal)
      const own = createServer({ ...contextOf(tls), ...(tls.clientCa ? { requestCert: true, rejectUnauthorized: false } : {}) })
      server = own
      serve(own, deps, signal)
      try {
        await new Promise<void>((resolve, reject) => {
          own.once('error', reject)
          own.listen(config.port, config.address, () => resolve())
        })
      } catch (error) {
        markFailed(error)
        throw error
      }
      markListening((own.address() as AddressInfo).port)
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      own.closeAllConnections()
      await new Promise<void>((resolve) => own.close(() => resolve()))
    },
  }
}

function serve(server: Server, deps: KubeletServerDeps, signal: AbortSignal): void {
  const routes = plainRoutes(deps)
  server.on('request', (request, response) => {
    answerPlain(deps, routes, request, response, signal).catch((error: unknown) =>
      deps.log.v(2).info('Request failed', { path: request.url, error: String(error) }),
    )
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {})
    // An upgraded connection is no longer the server's to close.
    const onAbort = () => socket.destroy()
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', onAbort))
    answerUpgrade(deps, request, socket, head).catch((error: unknown) => {
      if (!socket.destroyed && !(error instanceof HttpError)) socket.destroy()
      deps.log.v(2).info('Stream failed', { path: request.url, error: String(error) })
    })
  })
}

/** @throws HttpError 401 or 403 */
async function admit(deps: KubeletServerDeps, request: IncomingMessage, pathname: string): Promise<void> {
  const user = await identify(deps, request)
  if (!user) throw new HttpError(401, 'Unauthorized')
  const wanted = attributesOf(request.method ?? 'GET', pathname)
  for (const attributes of wanted) if (await deps.auth.authorize(user, attributes)) return
  const [last] = wanted.slice(-1)
  throw new HttpError(
    403,
    `Forbidden (user=${user.name}, verb=${last?.verb}, resource=nodes, subresource(s)=[${wanted.map(({ subresource }) => subresource).join(' ')}])`,
  )
}

async function identify(deps: KubeletServerDeps, request: IncomingMessage): Promise<KubeletUser | undefined> {
  const socket = request.socket as TLSSocket
  if (socket.authorized) {
    const { subject } = socket.getPeerCertificate()
    const organizations = subject?.O as string | string[] | undefined
    const [name] = [subject?.CN].flat()
    if (name) return { name, groups: [...(organizations === undefined ? [] : [organizations].flat()), 'system:authenticated'] }
  }
  const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
  return token === undefined ? undefined : deps.auth.authenticateToken(token)
}

function locate(request: IncomingMessage) {
  const url = new URL(request.url ?? '/', 'https://kubelet')
  const segments = url.pathname.split('/').filter(Boolean).map(decodeURIComponent)
  return { pathname: url.pathname, segments, query: url.searchParams }
}

async function answerPlain(
  deps: KubeletServerDeps,
  routes: ReadonlyMap<string, (route: Route) => Promise<Answer>>,
  request: IncomingMessage,
  response: ServerResponse,
  stop: AbortSignal,
): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  try {
    const { pathname, segments, query } = locate(request)
    await admit(deps, request, pathname)
    const [exact, first] = [segments.join('/'), segments[0] ?? '']
    const route = routes.get(exact) ?? routes.get(`${first}/*`)
    if (!route) throw new HttpError(404, '404 page not found')
    const answer = await route({ path: segments.slice(1), query, signal: AbortSignal.any([gone.signal, stop]) })
    response.setHeader('Content-Type', contentTypes[answer.type])
    if (answer.type !== 'stream') {
      response.end(answer.body)
      return
    }
    response.flushHeaders()
    for await (const chunk of answer.body) {
      if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
      if (gone.signal.aborted) break
    }
    response.end()
  } catch (error) {
    if (response.headersSent) {
      response.destroy()
      return
    }
    response.statusCode = error instanceof HttpError ? error.code : 500
    response.setHeader('Content-Type', contentTypes.text)
    response.end(`${error instanceof Error ? error.message : String(error)}\n`)
  }
}

function plainRoutes(deps: KubeletServerDeps): ReadonlyMap<string, (route: Route) => Promise<Answer>> {
  const { view, clock } = deps
  const stats = createStatsProvider(view, () => clock.now())
  const text = (body: string): Answer => ({ type: 'text', body })
  const json = (value: unknown): Answer => ({ type: 'json', body: JSON.stringify(value) })
  const podList = (running: boolean) => {
    const items = view
      .pods()
      .map((pod) => ({ ...pod, status: view.podStatus(pod.metadata.uid ?? '') ?? pod.status }))
      .filter((pod) => !running || pod.status.phase === 'Running')
    return json({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items })
  }
  const metrics = (body: string): Answer => ({ type: 'metrics', body })
  return new Map<string, (route: Route) => Promise<Answer>>([
    ['healthz', async () => text('ok')],
    ['healthz/ping', async () => text('ok')],
    ['healthz/syncloop', async () => text('ok')],
    ['pods', async () => podList(false)],
    ['runningpods', async () => podList(true)],
    ['configz', async () => json({ kubeletconfig: { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...view.config } })],
    ['stats/summary', async () => json(await stats.summary())],
    ['metrics', async () => metrics(deps.metricsText?.() ?? '')],
    ['metrics/probes', async () => metrics(view.probeMetrics())],
    ['metrics/resource', async () => metrics(await stats.resourceMetrics())],
    ['containerLogs/*', async ({ path, query, signal }) => ({ type: 'stream', body: await containerLog(view, clock.now(), path, query, signal) })],
    ['exec/*', refusePlain],
    ['attach/*', refusePlain],
    ['portForward/*', refusePlain],
  ])
}

async function refusePlain(): Promise<Answer> {
  throw new HttpError(400, 'unable to upgrade: missing upgrade headers in request')
}

async function answerUpgrade(deps: KubeletServerDeps, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const upgrade = { request, socket, head }
  try {
    const { pathname, segments, query } = locate(request)
    await admit(deps, request, pathname)
    const [what = '', ...path] = segments
    if (what === 'exec' || what === 'attach') await remoteCommand(deps.view, what, path, query, upgrade)
    else if (what === 'portForward') await portForward(deps.view, path, query, upgrade)
    else throw new HttpError(404, '404 page not found')
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    answerError(upgrade, error)
  }
}

function answerError(upgrade: Parameters<typeof refuse>[0], error: HttpError): void {
  if (error.code === 400 || error.code === 403) {
    refuse(upgrade, error.code, error.message)
    return
  }
  const reason = error.code === 401 ? 'Unauthorized' : error.code === 404 ? 'Not Found' : 'Internal Server Error'
  const body = `${error.message}\n`
  upgrade.socket.end(
    `HTTP/1.1 ${error.code} ${reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
