/**
 * The Transport over the wire (L2): JSON over HTTP/2 or HTTP/1.1, credentials, Status errors, patience with a busy server, watch streams.
 * Upstream: client-go/rest/request.go, transport (v1.36).
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseExactly } from '#api/machinery/json'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus, type Status, StatusError, type StatusReason } from '#api/machinery/status'
import { abortScope, deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { deepFreeze } from '#base/frozen'
import { type Tracer, traceHeaders } from '#base/traceContext'
import type { CredentialSource, Credentials } from './credentials.ts'
import {
  ConnectionError,
  createHttpConnection,
  type HttpAnswer,
  type HttpCall,
  type HttpConnection,
  type TlsOptions,
  type UpgradeAnswer,
} from './httpConnection.ts'
import { type Impersonate, identityHeaders } from './identityHeaders.ts'
import type { ApiRequest, ApiResponse, Transport, WatchEvent, WatchEventType } from './transport.ts'

export interface HttpTransportOptions {
  /** e.g. https://127.0.0.1:6443, with a path prefix if need be. */
  readonly server: string
  readonly tls?: TlsOptions | undefined
  /** A function is asked before each call, so tokens may rotate. */
  readonly bearerToken?: string | (() => string | undefined | Promise<string | undefined>) | undefined
  readonly basicAuth?: { readonly username: string; readonly password: string } | undefined
  readonly impersonate?: Impersonate | undefined
  readonly userAgent?: string | undefined
  /** Credentials that change at run time; they take precedence over the others. */
  readonly credentials?: CredentialSource | undefined
  /** A request that takes longer fails. Default: none. Watches last as long as they like. */
  readonly requestTimeoutMs?: number | undefined
  /** Lets the server compress long answers: for slow networks. */
  readonly compression?: boolean | undefined
  /** Called with the warnings of answers. */
  readonly onWarning?: ((text: string) => void) | undefined
  /** Changes each received object in place before any reader gets it: components remove the nulls that Go writes. */
  readonly tidy?: ((object: object) => void) | undefined
  /** Integers of answers that no double holds become bigints, which JSON.stringify refuses. Default: the nearest double. */
  readonly exactIntegers?: boolean | undefined
  /** One that other transports use as well, and that its owner closes. Absent: one of its own. */
  readonly connection?: HttpConnection | undefined
  readonly clock: Clock
  /** Hands the trace of the work around a request on to the server. Absent: none is handed on. */
  readonly tracer?: Tracer | undefined
}

export interface HttpTransport extends Transport {
  /**
   * Sends a call as it is, with the credentials of this transport, and resolves with any answer: for proxies. The user that the transport impersonates
   * replaces one that the call names.
   * @throws ConnectionError when no answer came.
   */
  forward(call: HttpCall, signal?: AbortSignal): Promise<HttpAnswer>
  /** The same for a call that asks for another protocol, such as a WebSocket. */
  upgrade(call: HttpCall, signal?: AbortSignal): Promise<UpgradeAnswer>
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

const maxRetries = 10

export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const server = new URL(options.server)
  const current: { credentials: Credentials } = { credentials: {} }
  const tls = { ...options.tls }
  if (options.credentials) {
    Object.defineProperty(tls, 'cert', { get: () => current.credentials.cert ?? options.tls?.cert, enumerable: true })
    Object.defineProperty(tls, 'key', { get: () => current.credentials.key ?? options.tls?.key, enumerable: true })
  }
  // Without credentials that change, the caller's own object: its members may be getters, which are read for each connection.
  const connection = options.connection ?? createHttpConnection(server, options.credentials ? tls : (options.tls ?? {}), options.clock)
  const wire: Wire = { options, connection, prefix: server.pathname.replace(/\/+$/, ''), current }
  return {
    request: (request, signal) => withTimeout(options, signal, (limited) => roundTrip(wire, request, limited)),
    watch: (request, signal) => watch(wire, request, signal),
    forward: async (call, signal) => connection.send(await passedOn(wire, call), signal),
    upgrade: async (call, signal) => connection.upgrade(await passedOn(wire, call), signal),
    close: async () => (options.connection ? undefined : connection.close()),
  }
}

interface Wire {
  readonly options: HttpTransportOptions
  readonly connection: HttpConnection
  readonly prefix: string
  /** What the last call was made with. */
  readonly current: { credentials: Credentials }
}

async function roundTrip(wire: Wire, request: ApiRequest, signal: AbortSignal | undefined): Promise<ApiResponse> {
  const answer = await exchange(wire, request, signal)
  const body = decode(answer, await readAll(answer, signal), wire.options)
  return { status: answer.status, body, warnings: warned(wire.options, answer) }
}

/** A call of another client, with the credentials of this transport instead of its own. */
async function passedOn(wire: Wire, call: HttpCall): Promise<HttpCall> {
  const { options, prefix } = wire
  if (options.credentials) await takeCredentials(wire, options.credentials)
  const isPassed = ([name]: readonly [string, unknown]) => name !== 'authorization' && !(options.impersonate && name.startsWith('impersonate-'))
  const headers = Object.fromEntries(Object.entries(call.headers).filter(isPassed))
  return { ...call, target: prefix + call.target, headers: { ...headers, ...identityHeaders({ ...options, token: await tokenOf(wire) }) } }
}

function warned({ onWarning }: HttpTransportOptions, answer: HttpAnswer): string[] {
  const warnings = warningsOf(answer)
  if (onWarning) for (const text of warnings) onWarning(text)
  return warnings
}

async function withTimeout<T>(
  options: HttpTransportOptions,
  signal: AbortSignal | undefined,
  act: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const { requestTimeoutMs, clock } = options
  if (requestTimeoutMs === undefined) return act(signal)
  const reason = () => new ConnectionError(`no answer came within ${requestTimeoutMs} ms`, false, undefined)
  using limit = deadlineScope({ clock, ms: requestTimeoutMs, reason }, signal)
  return await act(limit.signal)
}

/** Sends a request with the credentials of now, and once more with others when the server refuses them: it has not acted on it. */
async function exchange(wire: Wire, request: ApiRequest, signal: AbortSignal | undefined): Promise<HttpAnswer> {
  const { options, connection } = wire
  if (!options.credentials) return sendPatiently(options, connection, await callOf(wire, request), signal)
  const used = await takeCredentials(wire, options.credentials)
  try {
    return await sendPatiently(options, connection, await callOf(wire, request), signal)
  } catch (error) {
    if (!isStatus(error, 'Unauthorized')) throw error
    await options.credentials.refresh(used)
    if ((await takeCredentials(wire, options.credentials)) === used) throw error
    return sendPatiently(options, connection, await callOf(wire, request), signal)
  }
}

/** Connections that were made with another certificate speak for who one was: they are broken. */
async function takeCredentials({ connection, current }: Wire, source: CredentialSource): Promise<Credentials> {
  const before = current.credentials
  const now = await source.get()
  current.credentials = now
  if (before !== now && (before.cert !== undefined || now.cert !== undefined) && before.cert !== now.cert) connection.reset()
  return now
}

async function tokenOf({ options, current }: Wire): Promise<string | undefined> {
  return current.credentials.token ?? (typeof options.bearerToken === 'function' ? await options.bearerToken() : options.bearerToken)
}

async function callOf(wire: Wire, request: ApiRequest): Promise<HttpCall> {
  const { options, prefix } = wire
  const token = await tokenOf(wire)
  const body = request.body === undefined ? undefined : Buffer.from(typeof request.body === 'string' ? request.body : stringifyExactly(request.body))
  return {
    method: request.method,
    target: prefix + request.path + queryText(request.query),
    headers: {
      accept: request.accept ?? 'application/json',
      'user-agent': options.userAgent ?? 'skiff',
      ...(options.compression && !request.query?.watch ? { 'accept-encoding': 'gzip' } : {}),
      ...(body ? { 'content-type': request.contentType ?? 'application/json' } : {}),
      ...traceHeaders(options.tracer),
      ...identityHeaders({ ...options, token }),
    },
    body,
  }
}

function queryText(query: ApiRequest['query']): string {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined) continue
    for (const one of typeof value === 'string' ? [value] : value) pairs.append(name, one)
  }
  const text = pairs.toString()
  return text === '' ? '' : `?${text}`
}

/** Waits as long as a busy server asks to (Retry-After), and sends again what surely was not acted on. */
async function sendPatiently(options: HttpTransportOptions, connection: HttpConnection, call: HttpCall, signal: AbortSignal | undefined): Promise<HttpAnswer> {
  let retriedConnection = false
  for (let retries = 0; ; retries++) {
    let answer: HttpAnswer
    try {
      answer = await connection.send(call, signal)
    } catch (error) {
      // A shared connection may have died unnoticed: reading again is safe, writing only if the server refused the stream.
      const again = error instanceof ConnectionError && !retriedConnection && (call.method === 'GET' || error.unsent)
      if (!again) throw error
      retriedConnection = true
      continue
    }
    if (answer.status < 400) return answer
    const error = statusErrorOf(answer, await readAll(answer, signal))
    const afterSeconds = Number(answer.headers['retry-after'])
    const busy = answer.status === 429 || answer.status >= 500
    if (!busy || !(afterSeconds >= 0) || retries >= maxRetries || answer.headers['retry-after'] === undefined) throw error
    await options.clock.sleep(afterSeconds * 1000, signal)
  }
}

async function readAll(answer: HttpAnswer, signal: AbortSignal | undefined): Promise<Buffer> {
  const parts: Buffer[] = []
  try {
    for await (const part of answer.body) parts.push(part as Buffer)
  } catch (error) {
    throw signal?.aborted ? signal.reason : new ConnectionError('the answer was cut off', false, error)
  }
  signal?.throwIfAborted()
  const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
  return answer.headers['content-encoding'] === 'gzip' ? unzip(bytes) : bytes
}

function isJson(answer: HttpAnswer): boolean {
  return String(answer.headers['content-type'] ?? '').includes('json')
}

type Decoding = Pick<HttpTransportOptions, 'tidy' | 'exactIntegers'>

function decode(answer: HttpAnswer, bytes: Buffer, options: Decoding): unknown {
  if (!isJson(answer)) return bytes.toString()
  const value = parse(bytes.toString(), options)
  if (options.tidy && typeof value === 'object' && value !== null) options.tidy(value)
  return deepFreeze(value)
}

function parse(text: string, { exactIntegers }: Decoding): unknown {
  return exactIntegers ? parseExactly(text) : JSON.parse(text)
}

const unzip = promisify(gunzip)

const reasonByCode: Readonly<Record<number, StatusReason>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

function statusErrorOf(answer: HttpAnswer, bytes: Buffer): StatusError {
  const text = bytes.toString()
  if (isJson(answer)) {
    try {
      const status = JSON.parse(text) as Partial<Status>
      if (status.kind === 'Status') return StatusError.fromStatus(status, answer.status)
    } catch {
      // A proxy answered instead of the server: only the code is known.
    }
  }
  const retryAfterSeconds = Number(answer.headers['retry-after'])
  return new StatusError(reasonByCode[answer.status] ?? '', text.trim().slice(0, 2048) || `the server answered ${answer.status}`, {
    code: answer.status,
    ...(retryAfterSeconds > 0 ? { details: { retryAfterSeconds } } : {}),
  })
}

function warningsOf(answer: HttpAnswer): string[] {
  const header = answer.headers.warning
  if (header === undefined) return []
  const text = typeof header === 'string' ? header : header.join(', ')
  return [...text.matchAll(/299 \S+ "((?:\\.|[^"\\])*)"/g)].map((match) => (match[1] ?? '').replace(/\\(.)/g, '$1'))
}

async function* watch(wire: Wire, request: ApiRequest, signal: AbortSignal): AsyncGenerator<readonly WatchEvent[]> {
  // Leaving the loop early must cancel the stream, too: the call gets a separate signal.
  using leaving = abortScope(signal)
  const answer = await exchange(wire, { ...request, query: { ...request.query, watch: '1' } }, leaving.signal)
  warned(wire.options, answer)
  let rest: Buffer[] = []
  try {
    for await (const part of answer.body) {
      const bytes = part as Buffer
      const end = bytes.lastIndexOf(0x0a)
      if (end < 0) {
        rest.push(bytes)
        continue
      }
      const whole = Buffer.concat([...rest, bytes.subarray(0, end)]).toString()
      rest = end + 1 < bytes.length ? [bytes.subarray(end + 1)] : []
      yield* decodeEvents(whole, wire.options)
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw isStatus(error) ? error : new ConnectionError('the watch was cut off', false, error)
  } finally {
    leaving.abort()
    answer.body.destroy()
  }
  signal.throwIfAborted()
}

/** Lines to one batch; an ERROR event is thrown after the batch before it. */
function* decodeEvents(lines: string, options: Decoding): Generator<readonly WatchEvent[]> {
  const batch: WatchEvent[] = []
  for (const line of lines.split('\n')) {
    if (line === '') continue
    const event = parse(line, options) as { type: WatchEventType | 'ERROR'; object: Frozen<KubeObject> }
    if (event.type === 'ERROR') {
      if (batch.length > 0) yield batch
      const status = event.object as unknown as Partial<Status>
      throw StatusError.fromStatus(status, status.code ?? 500)
    }
    options.tidy?.(event.object)
    batch.push({ type: event.type, object: deepFreeze(event.object) as Frozen<KubeObject> })
  }
  if (batch.length > 0) yield batch
}
