/**
 * Makes connections to backends and sends requests on (L3).
 * Upstream: apimachinery/pkg/util/proxy (dial.go, upgradeaware.go), pkg/registry/core/rest.
 */
import { type LookupAddress, lookup } from 'node:dns'
import { type Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction, connect as netConnect, type Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { StatusError } from '#api/machinery/status'
import { connectTrusting } from '../core/serverTrust.ts'
import { authority, type Backend, type ForwardedRequest } from './backend.ts'
import { dialErrorText } from './dialError.ts'
import { requestHeaders } from './forwardedHeaders.ts'
import { addressNotAllowed } from './proxyableAddress.ts'
import { endingWith, httpAgent, httpsAgent, UnreachableAddress, wayTo } from './reach.ts'

const connectTimeoutMs = 30_000

/** Sends one request; the caller reads the answer's body. @throws ServiceUnavailable when the backend does not answer */
export async function open(request: ForwardedRequest, backend: Backend, body?: Readable | Buffer): Promise<IncomingMessage> {
  try {
    return await sendRequest(request, backend, body)
  } catch (error) {
    if (isStaleConnection(error) && !body) return sendRequest(request, { ...backend, agent: undefined }).catch((again) => unreachable(again, backend))
    return unreachable(error, backend)
  }
}

function unreachable(error: unknown, backend: Backend): never {
  if ((error as Error).name === 'AbortError') throw new StatusError('Timeout', 'the client went away')
  throw new StatusError('ServiceUnavailable', `error trying to reach service: ${dialErrorText(error, backend)}`, { cause: error })
}

/** A kept connection that its other end had closed meanwhile. */
const staleConnections = new WeakSet<Error>()

function isStaleConnection(error: unknown): boolean {
  return error instanceof Error && staleConnections.has(error)
}

/** As `open`, with the errors of the network as they are. */
export function sendRequest(request: ForwardedRequest, backend: Backend, body?: Readable | Buffer): Promise<IncomingMessage> {
  const headers = requestHeaders(request, backend)
  if (Buffer.isBuffer(body)) headers['content-length'] = String(body.length)
  return new Promise((resolve, reject) => {
    const { path } = backend
    const agent = agentFor(backend)
    const { signal } = request.cancellation
    // As an option: setTimeout() of a request waits until the connection is made.
    const options = {
      method: request.method,
      path,
      headers,
      agent,
      timeout: connectTimeoutMs,
      ...endingWith(signal, request.user?.name),
      ...allowedPlace(backend),
    }
    const outgoing = backend.tls ? httpsRequest({ ...options, ...tlsOptions(backend) }) : httpRequest(options)
    outgoing.on('timeout', () => {
      if (!outgoing.socket || outgoing.socket.connecting) outgoing.destroy(new Error(`dial tcp ${authority(backend)}: i/o timeout`))
    })
    outgoing.on('response', (response) => {
      // A reader of the body gets this error; without a reader yet, it must not be unhandled.
      response.on('error', () => undefined)
      resolve(response)
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (outgoing.reusedSocket && error.code === 'ECONNRESET') staleConnections.add(error)
      reject(error)
    })
    if (!body || Buffer.isBuffer(body)) outgoing.end(body)
    else {
      body.on('error', (error) => outgoing.destroy(error))
      body.pipe(outgoing)
    }
  })
}

function agentFor({ agent, reach, tls }: Backend): Agent | false {
  if (agent) return agent
  if (tls) return httpsAgent(reach)
  return reach ? httpAgent(reach) : false
}

/**
 * Opens a connection for an upgraded request.
 * @param signal ends the attempt; a connection that is made is the caller's
 * @param user on whose behalf
 * @throws StatusError 500, upstream's text for a backend that cannot be dialled; 503 for an address that is not dialled
 */
export async function dial(backend: Backend, signal: AbortSignal, user?: string): Promise<Duplex> {
  try {
    signal.throwIfAborted()
    return await connected(backend, await startConnection(backend, signal, user), signal)
  } catch (error) {
    const message = `error dialing backend: ${dialErrorText(error, backend)}`
    throw new StatusError(error instanceof UnreachableAddress ? 'ServiceUnavailable' : '', message, { cause: error })
  }
}

interface Connection {
  readonly socket: Socket
  readonly isConnected: boolean
}

async function startConnection(backend: Backend, signal: AbortSignal, user: string | undefined): Promise<Connection> {
  const { host, port, lookup } = allowedPlace(backend)
  const way = backend.reach && (await wayTo(backend.reach, host, lookup))
  const dialled = await way?.dialer?.(way.address, port, signal, user)
  const place = dialled ? { socket: dialled } : { host, port, lookup: way?.lookup ?? lookup }
  if (backend.tls) return { socket: connectTrusting({ ...place, ALPNProtocols: ['http/1.1'], ...tlsOptions(backend) }), isConnected: false }
  if (dialled) return { socket: dialled, isConnected: true }
  return { socket: netConnect({ host, port, ...(place.lookup ? { lookup: place.lookup } : {}) }), isConnected: false }
}

function connected(backend: Backend, { socket, isConnected }: Connection, signal: AbortSignal): Promise<Duplex> {
  socket.setNoDelay(true)
  if (isConnected) return Promise.resolve(socket)
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      signal.removeEventListener('abort', giveUp)
      socket.destroy()
      reject(error)
    }
    const giveUp = () => fail(signal.reason as Error)
    signal.addEventListener('abort', giveUp, { once: true })
    socket.setTimeout(connectTimeoutMs, () => fail(new Error(`dial tcp ${authority(backend)}: i/o timeout`)))
    socket.once('error', fail)
    socket.once(backend.tls ? 'secureConnect' : 'connect', () => {
      // The backend's certificate is not trusted: the error event follows.
      if (socket.destroyed) return
      socket.setTimeout(0)
      socket.removeListener('error', fail)
      signal.removeEventListener('abort', giveUp)
      resolve(socket)
    })
  })
}

/**
 * Host and port, with a look-up that checks the very addresses that are then connected to: asked twice, a name can have two answers.
 * @throws Error for an address that must not be connected to
 */
function allowedPlace({ host, port, mayDial }: Backend): { host: string; port: number; lookup?: LookupFunction } {
  if (!mayDial) return { host, port }
  if (isIP(host) !== 0 && !mayDial(host)) throw new Error(addressNotAllowed)
  const checked: LookupFunction = (name, options, done) => {
    lookup(name, options, (error, address, family) => {
      const found = typeof address === 'string' ? [address] : (address as readonly LookupAddress[] | undefined)?.map((one) => one.address)
      if (!error && !found?.every(mayDial)) done(new Error(addressNotAllowed), '')
      else done(error, address, family)
    })
  }
  return { host, port, lookup: checked }
}

function tlsOptions({ host, tls = {} }: Backend): ConnectionOptions {
  const { cert, key, ca, serverName, insecure } = tls
  return {
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
    ...(ca ? { ca } : {}),
    rejectUnauthorized: !insecure && (ca !== undefined || serverName !== undefined),
    // Without a name, the certificate must be for the address or name that is dialled.
    servername: serverName ?? (isIP(host) === 0 ? host : ''),
    ...(ca === undefined && serverName === undefined ? { checkServerIdentity: () => undefined } : {}),
  }
}
