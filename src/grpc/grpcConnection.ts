/**
 * Calls to a gRPC server on one connection (L1), which ./grpcSession.ts opens with the first call. Bytes in, bytes out: messages are ./protoMessage.ts's
 * matter. A call on this costs a fraction of what it costs on a general library, of which a node would use little.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import type { NetConnectOpts } from 'node:net'
import { GrpcError } from './grpcError.ts'
import { type GrpcTls, reconnecting, type Waiting } from './grpcSession.ts'
import { contentType, errorOf, errorOfHttpStatus, errorOfReset, FrameReader, frame } from './grpcWire.ts'
import type { KeepAlive } from './pings.ts'

export interface GrpcCallOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** Tries again until the server is there, instead of failing with UNAVAILABLE. */
  readonly waitForReady?: boolean | undefined
  readonly metadata?: GrpcMetadata | undefined
}

export interface GrpcConnection {
  /** @throws GrpcError; the signal's reason when it fires */
  unary(path: string, request: Uint8Array, options: GrpcCallOptions): Promise<Buffer>
  /** What the server sends until it ends the stream, or the signal fires, which ends it without an error. @throws GrpcError */
  stream(
    path: string,
    request: Uint8Array,
    options: { readonly signal: AbortSignal; readonly waitForReady?: boolean; readonly metadata?: GrpcMetadata },
  ): AsyncIterable<Buffer>
  /** A call on which both sides send messages. Sending after its end, or before a connection is there, is allowed: the latter waits. */
  duplex(path: string, options: { readonly signal: AbortSignal; readonly metadata?: GrpcMetadata }): DuplexCall
  /** Resolves when a connection is open and greeted. @throws GrpcError; the signal's reason when it fires */
  ready(signal: AbortSignal): Promise<void>
  close(): void
}

export interface DuplexCall {
  send(message: Uint8Array): void
  /** Resolves when the call is under way on a connection. @throws what `messages` throws */
  readonly opened: Promise<void>
  /** What the server sends; ends with the signal, without an error. @throws GrpcError */
  readonly messages: AsyncIterable<Buffer>
}

/** Headers of a call, such as a token. */
export type GrpcMetadata = Readonly<Record<string, string>>

export interface GrpcConnectionOptions {
  /** The user-agent header. Default: `skiff`. */
  readonly userAgent?: string | undefined
  /** Pings the server while calls are open, and gives the connection up when it does not answer: it may be stopped or cut off. */
  readonly keepAlive?: KeepAlive | undefined
  readonly tls?: GrpcTls | undefined
  /** Time in which a connection must be usable. Default: 20 seconds, as in Go. */
  readonly connectTimeoutMs?: number | undefined
  /** A larger answer fails the call. Default: 16 MiB, which is the kubelet's limit for runtimes. */
  readonly maxMessageBytes?: number | undefined
  /** The first call on each new connection. */
  readonly greeting?: Greeting | undefined
}

export interface Greeting {
  readonly path: string
  readonly request: Uint8Array
  /** Called with the answer. What it throws ends the connection, and fails the calls that wait for it. */
  accept(answer: Buffer): void
}

const defaultConnectTimeoutMs = 20_000
const defaultMaxMessageBytes = 16 << 20
/** The header takes eight digits. */
const longestTimeoutMs = 99_999_999
/** A timer for more fires at once. */
const longestTimerMs = 2 ** 31 - 1

/** Where to connect to, from `unix:/path`, `unix-abstract:name` or `host:port`. */
export function addressOf(target: string): NetConnectOpts {
  if (target.startsWith('unix-abstract:')) return { path: `\0${target.slice('unix-abstract:'.length)}` }
  if (target.startsWith('unix:')) return { path: target.slice('unix:'.length).replace(/^\/\//, '') }
  const { hostname, port } = new URL(`http://${target}`)
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 80) }
}

/**
 * @param target see {@link addressOf}; nothing is opened before the first call
 */
export function connectGrpc(target: string, options: GrpcConnectionOptions = {}): GrpcConnection {
  const { userAgent = 'skiff', tls, keepAlive, greeting } = options
  const { connectTimeoutMs = defaultConnectTimeoutMs, maxMessageBytes = defaultMaxMessageBytes } = options
  const headersOf = (path: string, { timeoutMs, metadata }: CallHeaders = {}) => ({
    ':method': 'POST',
    ':path': path,
    'content-type': contentType,
    te: 'trailers',
    'user-agent': userAgent,
    ...metadata,
    ...(timeoutMs === undefined ? {} : { 'grpc-timeout': `${Math.min(Math.ceil(timeoutMs), longestTimeoutMs)}m` }),
  })
  const greet = async (session: ClientHttp2Session, { path, request, accept }: Greeting) => {
    const stream = session.request(headersOf(path, { timeoutMs: connectTimeoutMs }))
    stream.end(frame(request))
    accept(await answerOf(stream, new AbortController().signal, maxMessageBytes))
  }
  const sessions = reconnecting({
    ...{ address: addressOf(target), tls, keepAlive, connectTimeoutMs },
    greet: greeting && ((session) => greet(session, greeting)),
  })
  const open = async (path: string, wait: Waiting, headers?: CallHeaders): Promise<ClientHttp2Stream> =>
    sessions.request(sessions.established() ?? (await sessions.ready(wait)), headersOf(path, headers))
  const ask = async (path: string, request: Uint8Array, wait: Waiting, headers?: CallHeaders): Promise<ClientHttp2Stream> => {
    const stream = await open(path, wait, headers)
    stream.end(frame(request))
    return stream
  }
  return {
    unary: (path, request, { timeoutMs, signal, waitForReady = false, metadata }) =>
      withDeadline(timeoutMs, signal, async (ended) =>
        answerOf(await ask(path, request, { ended, waitForReady }, { timeoutMs, metadata }), ended, maxMessageBytes),
      ),
    stream: (path, request, { signal, waitForReady = false, metadata }) =>
      messagesOf(async () => follow(await ask(path, request, { ended: signal, waitForReady }, { metadata })), signal, maxMessageBytes),
    duplex: (path, { signal, metadata }) => duplexCall(open(path, { ended: signal, waitForReady: false }, { metadata }), signal, maxMessageBytes),
    ready: async (signal) => {
      if (!sessions.established()) await sessions.ready({ ended: signal, waitForReady: false })
    },
    close: sessions.close,
  }
}

interface CallHeaders {
  readonly timeoutMs?: number | undefined
  readonly metadata?: GrpcMetadata | undefined
}

function duplexCall(opening: Promise<ClientHttp2Stream>, signal: AbortSignal, maxBytes: number): DuplexCall {
  const waiting: Uint8Array[] = []
  let stream: ClientHttp2Stream | undefined
  const write = (to: ClientHttp2Stream, message: Uint8Array) => {
    if (!to.destroyed && !to.writableEnded) to.write(frame(message))
  }
  const following = opening.then((one) => {
    stream = one
    const cancel = () => one.close(constants.NGHTTP2_CANCEL)
    signal.addEventListener('abort', cancel, { once: true })
    one.once('close', () => signal.removeEventListener('abort', cancel))
    if (signal.aborted) cancel()
    for (const message of waiting.splice(0)) write(one, message)
    return follow(one)
  })
  const opened = following.then(() => undefined)
  // The reader of messages gets the error.
  opened.catch(() => {})
  return {
    send: (message) => {
      if (stream) write(stream, message)
      else waiting.push(message)
    },
    opened,
    messages: messagesOf(() => following, signal, maxBytes),
  }
}

/** A signal that fires with the deadline or the caller's signal; the call fails with the reason. */
async function withDeadline<T>(timeoutMs: number, signal: AbortSignal | undefined, call: (ended: AbortSignal) => Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  const ending = new AbortController()
  const onAbort = () => ending.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(() => ending.abort(new GrpcError('DEADLINE_EXCEEDED', 'context deadline exceeded')), Math.min(timeoutMs, longestTimerMs))
  try {
    return await call(ending.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** The one message of an answer, once its trailers say that all went well. */
function answerOf(stream: ClientHttp2Stream, ended: AbortSignal, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const reader = new FrameReader(maxBytes)
    let message: Buffer | undefined
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
        for (const one of reader.push(chunk)) {
          if (message) throw new GrpcError('INTERNAL', 'cardinality violation: the server sent more than one message')
          message = one
        }
      } catch (error) {
        fail(error)
      }
    })
    stream.once('close', () => {
      ended.removeEventListener('abort', onEnded)
      const error = failure ?? outcome()
      if (error) reject(error)
      else if (message === undefined) reject(new GrpcError('UNIMPLEMENTED', 'the server sent no message'))
      else resolve(message)
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

/** A stream whose end is recorded from its beginning, which may be before its messages are read. */
interface Followed {
  readonly stream: ClientHttp2Stream
  readonly closed: Promise<void>
  outcome(): GrpcError | undefined
}

function follow(stream: ClientHttp2Stream): Followed {
  const closed = new Promise<void>((resolve) => {
    stream.once('close', resolve)
  })
  return { stream, closed, outcome: outcomeOf(stream) }
}

async function* messagesOf(open: () => Promise<Followed>, signal: AbortSignal, maxBytes: number): AsyncGenerator<Buffer> {
  if (signal.aborted) return
  let followed: Followed
  try {
    followed = await open()
  } catch (error) {
    if (signal.aborted) return
    throw error
  }
  const { stream, closed, outcome } = followed
  const cancel = () => stream.close(constants.NGHTTP2_CANCEL)
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()
  const reader = new FrameReader(maxBytes)
  try {
    for await (const chunk of stream) yield* reader.push(chunk as Buffer)
    // The stream closes when both sides have ended it.
    if (!stream.writableEnded) stream.end()
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
