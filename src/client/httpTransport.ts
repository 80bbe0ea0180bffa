/**
 * The Transport over the wire (L2): JSON over HTTP/2 or HTTP/1.1, credentials, Status errors, patience with a busy server, watch streams.
 * Upstream: client-go/rest/request.go, transport (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus, type Status, StatusError, type StatusReason } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { deepFreeze } from '#base/frozen'
import { ConnectionError, createHttpConnection, type HttpAnswer, type HttpCall, type HttpConnection, type TlsOptions } from './httpConnection.ts'
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
  readonly clock: Clock
}

/** Whom to act as. Upstream: client-go/transport/round_trippers.go, ImpersonationConfig. */
export interface Impersonate {
  readonly user: string
  readonly uid?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

export interface HttpTransport extends Transport {
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

const maxRetries = 10

export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const server = new URL(options.server)
  const connection = createHttpConnection(server, options.tls ?? {}, options.clock)
  const prefix = server.pathname.replace(/\/+$/, '')
  return {
    request: async (request, signal) => {
      const answer = await sendPatiently(options, connection, await callOf(options, prefix, request), signal)
      const body = decode(answer, await readAll(answer, signal))
      return { status: answer.status, body, warnings: warningsOf(answer) } satisfies ApiResponse
    },
    watch: (request, signal) => watch(options, connection, prefix, request, signal),
    close: () => connection.close(),
  }
}

async function callOf(options: HttpTransportOptions, prefix: string, request: ApiRequest): Promise<HttpCall> {
  const token = typeof options.bearerToken === 'function' ? await options.bearerToken() : options.bearerToken
  const { impersonate, basicAuth } = options
  const body = request.body === undefined ? undefined : Buffer.from(typeof request.body === 'string' ? request.body : JSON.stringify(request.body))
  return {
    method: request.method,
    target: prefix + request.path + queryText(request.query),
    headers: {
      accept: request.accept ?? 'application/json',
      'user-agent': options.userAgent ?? 'skiff',
      ...(body ? { 'content-type': request.contentType ?? 'application/json' } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(basicAuth ? { authorization: `Basic ${Buffer.from(`${basicAuth.username}:${basicAuth.password}`).toString('base64')}` } : {}),
      ...(impersonate ? impersonationHeaders(impersonate) : {}),
    },
    body,
  }
}

/** A header a value: servers take a comma for a part of a group's name. */
function impersonationHeaders({ user, uid, groups, extra }: Impersonate): Record<string, string | readonly string[]> {
  const extraHeaders = Object.entries(extra ?? {}).map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`, values] as const)
  return {
    'impersonate-user': user,
    ...(uid ? { 'impersonate-uid': uid } : {}),
    ...(groups?.length ? { 'impersonate-group': groups } : {}),
    ...Object.fromEntries(extraHeaders),
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
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
}

function isJson(answer: HttpAnswer): boolean {
  return String(answer.headers['content-type'] ?? '').includes('json')
}

function decode(answer: HttpAnswer, bytes: Buffer): unknown {
  if (!isJson(answer)) return bytes.toString()
  return deepFreeze(JSON.parse(bytes.toString()))
}

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
      // Something between us and the server answered; the code says what matters.
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

async function* watch(
  options: HttpTransportOptions,
  connection: HttpConnection,
  prefix: string,
  request: ApiRequest,
  signal: AbortSignal,
): AsyncGenerator<readonly WatchEvent[]> {
  const call = await callOf(options, prefix, { ...request, query: { ...request.query, watch: '1' } })
  // Leaving the loop early must cancel the stream too, so the call has a signal of its own.
  const leaving = new AbortController()
  const answer = await sendPatiently(options, connection, call, AbortSignal.any([signal, leaving.signal]))
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
      yield* decodeEvents(whole)
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
function* decodeEvents(lines: string): Generator<readonly WatchEvent[]> {
  const batch: WatchEvent[] = []
  for (const line of lines.split('\n')) {
    if (line === '') continue
    const event = JSON.parse(line) as { type: WatchEventType | 'ERROR'; object: Frozen<KubeObject> }
    if (event.type === 'ERROR') {
      if (batch.length > 0) yield batch
      const status = event.object as unknown as Partial<Status>
      throw StatusError.fromStatus(status, status.code ?? 500)
    }
    batch.push({ type: event.type, object: deepFreeze(event.object) as Frozen<KubeObject> })
  }
  if (batch.length > 0) yield batch
}
