/**
 * One connection to a gRPC server (L1), opened with the first call and again after it broke. Bytes in, bytes out: messages are ./protoMessage.ts's
 * matter. A call on this costs a fraction of what it costs on a general library, of which a node would use little.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { connect as connectSocket, type NetConnectOpts } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { GrpcError } from './grpcError.ts'
import { contentType, errorOf, errorOfHttpStatus, errorOfReset, FrameReader, frame } from './grpcWire.ts'

export interface GrpcCallOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** Tries again until the server is there, instead of failing with UNAVAILABLE. */
  readonly waitForReady?: boolean | undefined
}

export interface GrpcConnection {
  /** @throws GrpcError; the signal's reason when it fires */
  unary(path: string, request: Uint8Array, options: GrpcCallOptions): Promise<Buffer>
  /** What the server sends until it ends the stream, or the signal fires, which ends it without an error. @throws GrpcError */
  stream(path: string, request: Uint8Array, options: { readonly signal: AbortSignal; readonly waitForReady?: boolean }): AsyncIterable<Buffer>
  close(): void
}

const firstRetryMs = 200
const longestRetryMs = 5_000
const streamWindowBytes = 1 << 20
const connectionWindowBytes = 4 << 20
/** The header takes eight digits. */
const longestTimeoutMs = 99_999_999

/** Where to connect to, from `unix:/path`, `unix-abstract:name` or `host:port`. */
export function addressOf(target: string): NetConnectOpts {
  if (target.startsWith('unix-abstract:')) return { path: `\0${target.slice('unix-abstract:'.length)}` }
  if (target.startsWith('unix:')) return { path: target.slice('unix:'.length).replace(/^\/\//, '') }
  const { hostname, port } = new URL(`http://${target}`)
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 80) }
}

/**
 * @param target see {@link addressOf}; nothing is opened before the first call
 * @param userAgent sent in the user-agent header
 */
export function connectGrpc(target: string, userAgent = 'skiff'): GrpcConnection {
  const session = reconnecting(addressOf(target))
  const open = async (path: string, request: Uint8Array, wait: Waiting, timeoutMs?: number): Promise<ClientHttp2Stream> => {
    const stream = session.request(session.established() ?? (await session.ready(wait)), {
      ':method': 'POST',
      ':path': path,
      'content-type': contentType,
      te: 'trailers',
      'user-agent': userAgent,
      ...(timeoutMs === undefined ? {} : { 'grpc-timeout': `${Math.min(Math.ceil(timeoutMs), longestTimeoutMs)}m` }),
    })
    stream.end(frame(request))
    return stream
  }
  return {
    unary: (path, request, { timeoutMs, signal, waitForReady = false }) =>
      withDeadline(timeoutMs, signal, async (ended) => answerOf(await open(path, request, { ended, waitForReady }, timeoutMs), ended)),
    stream: (path, request, { signal, waitForReady = false }) => messagesOf(() => open(path, request, { ended: signal, waitForReady }), signal),
    close: session.close,
  }
}

/** How long to try: until `ended` fires. */
interface Waiting {
  readonly ended: AbortSignal
  readonly waitForReady: boolean
}

/** A signal that fires with the deadline or the caller's signal; the call fails with the reason. */
async function withDeadline<T>(timeoutMs: number, signal: AbortSignal | undefined, call: (ended: AbortSignal) => Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  const ending = new AbortController()
  const onAbort = () => ending.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(() => ending.abort(new GrpcError('DEADLINE_EXCEEDED', 'context deadline exceeded')), timeoutMs)
  try {
    return await call(ending.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** The one message of an answer, once its trailers say that all went well. */
function answerOf(stream: ClientHttp2Stream, ended: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const reader = new FrameReader()
    const messages: Buffer[] = []
    let failure: unknown
    const fail = (error: unknown) => {
      failure ??= error
      stream.close(constants.NGHTTP2_CANCEL)
    }
    const onEnded = () => fail(ended.reason)
    const outcome = outcomeOf(stream)
    ended.addEventListener('abort', onEnded, { once: true })
    stream.on('data', (chunk: Buffer) => {
      try {
        messages.push(...reader.push(chunk))
      } catch (error) {
        fail(error)
      }
    })
    stream.once('close', () => {
      ended.removeEventListener('abort', onEnded)
      const error = failure ?? outcome()
      if (error) reject(error)
      else if (messages[0] === undefined) reject(new GrpcError('UNIMPLEMENTED', 'the server sent no message'))
      else resolve(messages[0])
    })
    if (ended.aborted) onEnded()
  })
}

/** Follows headers and trailers; to be asked, once the stream is closed, for the error it ended with. */
function outcomeOf(stream: ClientHttp2Stream): () => GrpcError | undefined {
  const { session } = stream
  let headers: IncomingHttpHeaders | undefined
  let trailers: IncomingHttpHeaders | undefined
  let broken: Error | undefined
  stream.once('response', (received) => {
    headers = received
  })
  stream.once('trailers', (received) => {
    trailers = received
  })
  stream.once('error', (error) => {
    broken = error
  })
  return () => {
    const last = trailers ?? headers
    if (last?.['grpc-status'] !== undefined) return errorOf(last)
    // A lost connection looks as if each of its streams had been reset.
    const isLost = session === undefined || session.closed || session.destroyed
    const isReset = broken === undefined || (broken as NodeJS.ErrnoException).code === 'ERR_HTTP2_STREAM_ERROR'
    if (isLost || !isReset) return new GrpcError('UNAVAILABLE', broken?.message ?? 'the connection ended before the answer', broken)
    const status = headers?.[':status'] as number | undefined
    return status !== undefined && status !== 200 ? errorOfHttpStatus(status) : errorOfReset(stream.rstCode)
  }
}

async function* messagesOf(open: () => Promise<ClientHttp2Stream>, signal: AbortSignal): AsyncGenerator<Buffer> {
  if (signal.aborted) return
  let stream: ClientHttp2Stream
  try {
    stream = await open()
  } catch (error) {
    if (signal.aborted) return
    throw error
  }
  const cancel = () => stream.close(constants.NGHTTP2_CANCEL)
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()
  const reader = new FrameReader()
  const outcome = outcomeOf(stream)
  const closed = new Promise<void>((resolve) => {
    stream.once('close', resolve)
  })
  try {
    for await (const chunk of stream) yield* reader.push(chunk as Buffer)
    await closed
  } catch (error) {
    if (signal.aborted) return
    if (error instanceof GrpcError) throw error
    await closed
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
  const error = outcome()
  if (error && !signal.aborted) throw error
}

/** The session that calls share. Idle, it keeps no process alive. */
function reconnecting(address: NetConnectOpts) {
  let current: Promise<ClientHttp2Session> | undefined
  let usable: ClientHttp2Session | undefined
  let isClosed = false
  let active = 0
  const connect = (): Promise<ClientHttp2Session> => {
    const session = connectHttp2('http://localhost', {
      createConnection: () => connectSocket(address),
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
    })
    const connected = new Promise<ClientHttp2Session>((resolve, reject) => {
      const forget = () => {
        if (current === connected) current = undefined
        if (usable === session) usable = undefined
      }
      session.once('connect', () => {
        session.setLocalWindowSize(connectionWindowBytes)
        if (active === 0) session.unref()
        usable = session
        resolve(session)
      })
      session.on('error', (error) => {
        forget()
        reject(new GrpcError('UNAVAILABLE', `connection error: ${error.message}`, error))
      })
      session.once('goaway', forget)
      session.once('close', () => {
        forget()
        reject(new GrpcError('UNAVAILABLE', 'the connection was closed'))
      })
    })
    return connected
  }
  const ready = async ({ ended, waitForReady }: Waiting): Promise<ClientHttp2Session> => {
    for (let pauseMs = firstRetryMs; ; pauseMs = Math.min(pauseMs * 2, longestRetryMs)) {
      if (isClosed) throw new GrpcError('CANCELLED', 'the connection has been closed by its user')
      current ??= connect()
      try {
        return await unlessEnded(current, ended)
      } catch (error) {
        if (ended.aborted) throw ended.reason
        if (!waitForReady) throw error
        await sleep(pauseMs, undefined, { signal: ended }).catch(() => {})
        ended.throwIfAborted()
      }
    }
  }
  const request = (session: ClientHttp2Session, headers: OutgoingHttpHeaders): ClientHttp2Stream => {
    if (session.closed) throw new GrpcError('UNAVAILABLE', 'the connection was closed')
    const stream = session.request(headers)
    if (active++ === 0) session.ref()
    stream.once('close', () => {
      if (--active === 0 && !session.destroyed) session.unref()
    })
    return stream
  }
  const close = () => {
    isClosed = true
    current?.then((session) => session.destroy()).catch(() => {})
    current = undefined
    usable = undefined
  }
  return { established: () => usable, ready, request, close }
}

/** What the promise resolves with, unless the signal fires first. */
function unlessEnded<T>(promise: Promise<T>, ended: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onEnded = () => reject(ended.reason)
    if (ended.aborted) return onEnded()
    ended.addEventListener('abort', onEnded, { once: true })
    promise.then(resolve, reject).finally(() => ended.removeEventListener('abort', onEnded))
  })
}
