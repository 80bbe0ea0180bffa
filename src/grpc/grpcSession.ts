/**
 * The HTTP/2 session below a gRPC connection (L1): opened with the first call, used once the server has introduced itself, kept alive by pings, and
 * opened again after it broke. Calls are ./grpcConnection.ts's matter. Upstream: grpc-go clientconn.go, internal/transport/http2_client.go.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants, type OutgoingHttpHeaders } from 'node:http2'
import { connect as connectSocket, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, type SecureContextOptions } from 'node:tls'
import { orAborted } from '#base/orAborted'
import { GrpcError } from './grpcError.ts'
import { type KeepAlive, pingPeer } from './pings.ts'
import { tooManyPings } from './serverKeepAlive.ts'

/** Present: TLS, with these trusted authorities and this client certificate (PEM). */
export type GrpcTls = Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> & { readonly serverName?: string | undefined }

export interface SessionOptions {
  readonly address: NetConnectOpts
  readonly tls: GrpcTls | undefined
  readonly keepAlive: KeepAlive | undefined
  /** Bounds the connecting, the server's first frame and the greeting together. */
  readonly connectTimeoutMs: number
  /** Runs on each new session before it carries calls. One that rejects ends the session. */
  readonly greet: ((session: ClientHttp2Session) => Promise<void>) | undefined
}

/** How long to try: until `ended` fires. */
export interface Waiting {
  readonly ended: AbortSignal
  readonly waitForReady: boolean
}

export interface Sessions {
  /** The session, if calls can use it now. */
  established(): ClientHttp2Session | undefined
  /** Opens a session unless one is open. @throws GrpcError marked as unsent; the reason of `ended` */
  ready(wait: Waiting): Promise<ClientHttp2Session>
  /** @throws GrpcError marked as unsent when the session has ended */
  request(session: ClientHttp2Session, headers: OutgoingHttpHeaders): ClientHttp2Stream
  close(): void
}

interface Opened {
  readonly session: ClientHttp2Session
  readonly ready: Promise<ClientHttp2Session>
}

const firstRetryMs = 200
const longestRetryMs = 5_000
const streamWindowBytes = 1 << 20
const connectionWindowBytes = 4 << 20
/** Without calls there are no pings: the kernel notices that a server has vanished. Upstream: the default of Go's net.Dialer. */
const tcpKeepAlive = { keepAlive: true, keepAliveInitialDelay: 15_000 }

/** A session that is destroyed emits `close` some turns later; one that the server ends is closed and still carries its calls. */
const isUsable = (session: ClientHttp2Session) => !session.closed && !session.destroyed

const lost = (cause?: unknown) => new GrpcError('UNAVAILABLE', 'the connection was closed', cause)

/** The session that calls share. Idle, it keeps no process alive. */
export function reconnecting(options: SessionOptions): Sessions {
  let current: Opened | undefined
  let usable: ClientHttp2Session | undefined
  let isClosed = false
  let { keepAlive } = options
  /** Calls of each open session. One that the server ends keeps its calls while the next one is in use. */
  const calls = new Map<ClientHttp2Session, number>()
  const isNeeded = (session: ClientHttp2Session) => (calls.get(session) ?? 0) > 0
  const connect = (): Opened => {
    const forget = () => {
      if (current === opened) current = undefined
      if (usable === opened.session) usable = undefined
    }
    const onReady = (session: ClientHttp2Session) => {
      if (!isNeeded(session)) session.unref()
      usable = session
    }
    const opened = openSession({ ...options, keepAlive }, { isNeeded, onReady, onLost: forget })
    calls.set(opened.session, 0)
    opened.session.once('goaway', (code, _, reason) => {
      if (keepAlive && code === constants.NGHTTP2_ENHANCE_YOUR_CALM && reason?.toString() === tooManyPings)
        keepAlive = { ...keepAlive, pauseMs: keepAlive.pauseMs * 2 }
    })
    opened.session.once('close', () => calls.delete(opened.session))
    return opened
  }
  const ready = async ({ ended, waitForReady }: Waiting): Promise<ClientHttp2Session> => {
    for (let pauseMs = firstRetryMs; ; pauseMs = Math.min(pauseMs * 2, longestRetryMs)) {
      if (isClosed) throw new GrpcError('CANCELLED', 'the connection has been closed by its user')
      if (!current || !isUsable(current.session)) current = connect()
      try {
        return await orAborted(current.ready, ended)
      } catch (error) {
        if (ended.aborted) throw asUnsent(ended.reason)
        if (!waitForReady) throw asUnsent(error)
        await sleep(pauseMs, undefined, { signal: ended }).catch(() => {})
        if (ended.aborted) throw asUnsent(ended.reason)
      }
    }
  }
  const request = (session: ClientHttp2Session, headers: OutgoingHttpHeaders): ClientHttp2Stream => {
    if (!isUsable(session)) throw asUnsent(lost())
    const stream = session.request(headers)
    if (!isNeeded(session)) session.ref()
    calls.set(session, (calls.get(session) ?? 0) + 1)
    stream.once('close', () => {
      if (session.destroyed) return
      calls.set(session, (calls.get(session) ?? 1) - 1)
      if (!isNeeded(session)) session.unref()
    })
    return stream
  }
  const close = () => {
    isClosed = true
    for (const session of calls.keys()) session.destroy()
    current = undefined
    usable = undefined
  }
  return { established: () => (usable && isUsable(usable) ? usable : undefined), ready, request, close }
}

interface SessionEvents {
  /** Whether calls are open: only then is the server pinged. */
  isNeeded(session: ClientHttp2Session): boolean
  onReady(session: ClientHttp2Session): void
  onLost(): void
}

/**
 * The session is ready when the server's settings have arrived: a program that is stopped has connections too, because its kernel accepts them.
 */
function openSession({ address, tls, keepAlive, connectTimeoutMs, greet }: SessionOptions, { isNeeded, onReady, onLost }: SessionEvents): Opened {
  let socket: Socket | undefined
  const session = connectHttp2('http://localhost', {
    createConnection: () => {
      const kept = { ...address, ...tcpKeepAlive }
      socket = tls ? connectOverTls(kept, tls) : connectSocket(kept)
      return endedByError(socket)
    },
    settings: { enablePush: false, initialWindowSize: streamWindowBytes },
  })
  const isSlow = () => session.destroy(new Error(`the server did not answer within ${connectTimeoutMs} ms`))
  const timer = setTimeout(isSlow, connectTimeoutMs)
  const ready = new Promise<ClientHttp2Session>((resolve, reject) => {
    const start = async () => {
      try {
        session.setLocalWindowSize(connectionWindowBytes)
        await greet?.(session)
      } catch (error) {
        reject(isUsable(session) || error instanceof GrpcError ? error : lost(error))
        session.destroy()
        return
      }
      if (!isUsable(session)) return reject(lost())
      clearTimeout(timer)
      if (keepAlive)
        pingPeer(
          session,
          keepAlive,
          () => isNeeded(session),
          () => socket?.bytesRead ?? 0,
        )
      onReady(session)
      resolve(session)
    }
    session.once('remoteSettings', () => void start())
    session.on('error', (error) => {
      onLost()
      const alert = alertOf(error)
      reject(new GrpcError('UNAVAILABLE', `connection error: ${alert ?? error.message}`, alert === undefined ? error : undefined))
    })
    session.once('goaway', onLost)
    session.once('close', () => {
      clearTimeout(timer)
      onLost()
      reject(lost())
    })
  })
  // A connection that breaks before it is ready may have lost its callers.
  ready.catch(() => {})
  return { session, ready }
}

function connectOverTls(address: NetConnectOpts, { serverName, ...context }: GrpcTls) {
  const host = 'host' in address ? (address.host ?? '') : ''
  const servername = serverName ?? (isIP(host) ? '' : host)
  return connectTls({ ...address, ...context, ...(servername === '' ? {} : { servername }), ALPNProtocols: ['h2'] })
}

/**
 * The session of a TLS 1.3 server that refuses the client's certificate after the handshake emits neither 'error' nor 'close' until its socket is destroyed
 * (Node.js 20 to 26).
 */
function endedByError(socket: Socket): Socket {
  return socket.once('error', (error) => socket.destroy(error))
}

/** An alert of the peer in the words of Go's TLS, which users of etcd know; OpenSSL's text names its own files. Undefined: the error is none. */
function alertOf(error: Error & { readonly reason?: string }): string | undefined {
  const alert = /^(?:sslv3|tlsv1|tlsv13) alert (.+)$/.exec(error.reason ?? '')?.[1]
  return alert && `remote error: tls: ${alert}`
}

function asUnsent(error: unknown): unknown {
  if (error instanceof GrpcError) error.isUnsent = true
  return error
}
