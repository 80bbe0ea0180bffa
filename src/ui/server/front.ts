/**
 * The server behind the page of `skiff ui` (L4): serves the page's files on loopback, logs users in, and passes API requests on to one cluster with the
 * credentials of the session. Model: `kubectl proxy`; but every request proves that it comes from the page of a logged-in user.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { StatusError } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { type Asset, readAssets } from './assets.ts'
import {
  checkApiTarget,
  checkHead,
  cookieName,
  cookieOf,
  dataHeaders,
  headersForPage,
  headersForServer,
  needsSession,
  offeredProtocols,
  pageHeaders,
} from './guard.ts'
import { type LoginOptions, login } from './login.ts'
import { readBody } from './readBody.ts'
import { type Session, Sessions } from './sessions.ts'
import { passUpgrade } from './upgrade.ts'

/** An answer that the front computes with the session's credentials. @throws StatusError */
export type Computed = (query: URLSearchParams, session: Session) => Promise<unknown>

export interface FrontOptions extends LoginOptions {
  readonly clock: Clock
  /** 0: any free one. */
  readonly port: number
  /** The folder with the page's files. */
  readonly assets: string
  /** By path. */
  readonly computed: Readonly<Record<string, Computed>>
}

export interface Front {
  readonly port: number
  /** The address with a code that logs in once, in its fragment, which browsers send to no server. */
  newUrl(): string
  close(): Promise<void>
}

const mostConnections = 256
const mostBodyBytes = 8 * 2 ** 20

export async function startFront(options: FrontOptions): Promise<Front> {
  const assets = await readAssets(options.assets)
  const sessions = new Sessions(options.clock)
  const server = http.createServer({ maxHeaderSize: 32 * 1024, requestTimeout: 60_000 })
  server.maxConnections = mostConnections
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const state: State = { options, assets, sessions, port, routes: routesOf(options, sessions) }
  server.on('request', (request, response) => {
    answer(state, request, response).catch((error: unknown) => refuse(response, error))
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    upgrade(state, request, socket, head).catch((error: unknown) => refuseUpgrade(socket, error))
  })
  return {
    port,
    newUrl: () => `http://127.0.0.1:${port}/#code=${sessions.newCode()}`,
    close: () =>
      new Promise((resolve) => {
        sessions.closeAll()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface State {
  readonly options: FrontOptions
  readonly assets: ReadonlyMap<string, Asset>
  readonly sessions: Sessions
  readonly port: number
  readonly routes: ReadonlyMap<string, Route>
}

interface Call {
  readonly session: Session
  readonly cookie: string
  readonly query: URLSearchParams
}

interface Route {
  readonly method: 'GET' | 'POST'
  readonly answer: (call: Call, response: ServerResponse) => void | Promise<void>
}

/** What the front itself answers to a page that has logged in. Everything else that needs a session goes to the cluster. */
function routesOf({ computed, cluster }: FrontOptions, sessions: Sessions): ReadonlyMap<string, Route> {
  const logout: Route = {
    method: 'POST',
    answer: ({ cookie }, response) => {
      sessions.close(cookie)
      response.writeHead(204, dataHeaders).end()
    },
  }
  const facts: Route = { method: 'GET', answer: ({ session: { user, groups } }, response) => sendJson(response, { user, groups, cluster }) }
  const others = Object.entries(computed).map(([path, compute]): [string, Route] => [
    path,
    { method: 'GET', answer: async ({ query, session }, response) => sendJson(response, await compute(query, session)) },
  ])
  return new Map([['/front/logout', logout], ['/front/session', facts], ...others])
}

async function answer(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url: target = '/', headers } = request
  checkHead({ method, target, headers, isUpgrade: false }, state.port)
  const [path = ''] = target.split('?', 1)
  if (path === '/front/login') return login(state, request, response)
  if (!needsSession(target)) return sendAsset(state.assets.get(path), request, response)
  const cookie = cookieOf(headers.cookie, cookieName(state.port))
  const key = headers['x-skiff-key']
  const session = state.sessions.find(cookie, typeof key === 'string' ? key : undefined)
  if (!session) throw new StatusError('Unauthorized', 'log in first')
  const route = state.routes.get(path)
  if (!route && path.startsWith('/front')) throw new StatusError('NotFound', 'the front has no such answer')
  if (!route) return passOn(session, request, response)
  if (method !== route.method) throw new StatusError('MethodNotAllowed', `${method} is not possible here`)
  await route.answer({ session, cookie: cookie as string, query: new URL(target, 'http://localhost').searchParams }, response)
}

async function passOn(session: Session, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url: target = '/', headers } = request
  checkApiTarget(target)
  const body = await readBody(request, mostBodyBytes)
  using left = abortScope(session.signal)
  response.once('close', () => left.abort(new Error('the page has left')))
  const live = await session.transport.forward({ method, target, headers: headersForServer(headers), body: body.length === 0 ? undefined : body }, left.signal)
  response.writeHead(live.status, headersForPage(live.headers))
  response.flushHeaders()
  await pipeline(live.body, response)
}

async function upgrade(state: State, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const { method = '', url: target = '/', headers } = request
  checkHead({ method, target, headers, isUpgrade: true }, state.port)
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') throw new StatusError('BadRequest', 'only WebSockets are passed on')
  if (!needsSession(target)) throw new StatusError('NotFound', 'there is no WebSocket here')
  checkApiTarget(target)
  const { key } = offeredProtocols(headers['sec-websocket-protocol'])
  const session = state.sessions.find(cookieOf(headers.cookie, cookieName(state.port)), key)
  if (!session) throw new StatusError('Unauthorized', 'log in first')
  await passUpgrade(session, request, socket, head)
}

function sendAsset(asset: Asset | undefined, { method, headers }: IncomingMessage, response: ServerResponse): void {
  if (method !== 'GET' && method !== 'HEAD') throw new StatusError('MethodNotAllowed', `${method} is not possible here`)
  if (!asset) throw new StatusError('NotFound', 'there is no such file')
  const isZipped = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))
  response.writeHead(200, {
    ...pageHeaders,
    'content-type': asset.type,
    'cache-control': asset.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
    ...(isZipped ? { 'content-encoding': 'gzip' } : {}),
  })
  response.end(method === 'HEAD' ? undefined : isZipped ? asset.zipped() : asset.bytes)
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { ...dataHeaders, 'content-type': 'application/json' }).end(JSON.stringify(value ?? null))
}

function statusOf(error: unknown): StatusError {
  return error instanceof StatusError ? error : new StatusError('ServiceUnavailable', `the cluster does not answer: ${messageOf(error)}`)
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const status = statusOf(error)
  response.writeHead(status.code, { ...dataHeaders, 'content-type': 'application/json' }).end(JSON.stringify(status.toStatus()))
}

function refuseUpgrade(socket: Duplex, error: unknown): void {
  const { code, message } = statusOf(error)
  const body = Buffer.from(`${message}\n`)
  socket.end(
    `HTTP/1.1 ${code} ${http.STATUS_CODES[code] ?? ''}\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
}
