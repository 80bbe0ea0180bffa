/**
 * The transport of components in the same process (L3): the same pipeline with nothing encoded. Objects are the cache's own, frozen.
 */

import { setMaxListeners } from 'node:events'
import { parseExactly } from '#api/machinery/json'
import { type Status, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { deepFreeze } from '#base/frozen'
import type { ApiRequest, ApiResponse, Transport, WatchEvent } from '#client/transport'
import { type Answer, type BytesAnswer, type StreamAnswer, statusOf, type ValueAnswer, type WatchAnswer } from '../core/answer.ts'
import { Cancellation } from '../core/cancellation.ts'
import { listValue } from '../core/encode.ts'
import { isLargeObject, turn } from '../core/fairLoop.ts'
import type { ServerRequest, UserInfo } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { formAt, itemValue, portionBytes } from './respond.ts'

interface Deps {
  readonly handle: Handler
  readonly clock: Clock
}

/** Parsed JSON documents by their bytes: documents that do not change, such as discovery's, are parsed once for all readers. */
type Documents = WeakMap<Uint8Array, unknown>

export function inProcessTransport(deps: Deps, user: UserInfo, userAgent: string): Transport {
  const documents: Documents = new WeakMap()
  const send = async (request: ApiRequest, watch: boolean, cancellation: Cancellation) => {
    const made = toServerRequest(user, userAgent, request, watch, cancellation)
    const answer = await deps.handle(made)
    if (statusOf(answer) >= 400) throw failure(answer.type === 'stream' ? await valueOfStream(answer) : answer)
    return { answer, warnings: made.warnings }
  }
  return {
    async request(request, signal): Promise<ApiResponse> {
      const cancellation = new Cancellation(signal)
      try {
        const { answer, warnings } = await send(request, false, cancellation)
        return { status: statusOf(answer), body: await bodyOf(answer, documents), warnings }
      } finally {
        cancellation.release()
      }
    },
    async *watch(request, signal): AsyncGenerator<readonly WatchEvent[]> {
      // Components share one signal among all their watches.
      setMaxListeners(0, signal)
      const cancellation = new Cancellation(signal)
      let release: (() => void) | undefined
      try {
        const { answer } = await send(request, true, cancellation)
        if (answer.type === 'stream') {
          yield* streamedEvents(answer, signal)
          return
        }
        if (answer.type !== 'watch') throw new Error(`${request.path} answered without a watch`)
        const { session } = answer
        release = endInTime(deps.clock, answer, signal)
        // No generator within this one: each costs several promises an event, and a cluster has a hundred watches.
        for (let place = 0; ; ) {
          const items = session.take(portionBytes)
          if (!items) return
          const pending = items.length === 0 ? session.ready() : session.prepared(items)
          if (pending) await pending
          if (signal.aborted) return
          if (items.length > 0) yield items.map((item) => itemValue(formAt(answer, place++), item) as WatchEvent)
        }
      } finally {
        release?.()
        cancellation.release()
      }
    },
  }
}

/** Closes the watch when its time is up or the signal aborts, or when the returned function is called. */
function endInTime(clock: Clock, { session, timeoutMs }: WatchAnswer, signal: AbortSignal): () => void {
  const close = () => session.close()
  const timer = clock.timer(timeoutMs, close)
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  return () => {
    timer.cancel()
    signal.removeEventListener('abort', close)
    close()
  }
}

/** The events of a watch that another server answers: one JSON document per line. */
async function* streamedEvents({ body }: StreamAnswer, signal: AbortSignal): AsyncGenerator<readonly WatchEvent[]> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      const whole = lines.filter((line) => line !== '')
      if (whole.length > 0) yield whole.map((line) => deepFreeze(parseExactly(line) as WatchEvent))
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** The complete answer of another server. */
async function valueOfStream({ status, headers, body }: StreamAnswer): Promise<ValueAnswer | BytesAnswer> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk as Uint8Array))
  const bytes = Buffer.concat(chunks)
  const contentType = String(headers['content-type'] ?? '')
  if (contentType.startsWith('application/json')) return { type: 'value', status, value: parseExactly(bytes) }
  return { type: 'bytes', status, contentType, bytes }
}

function toServerRequest(user: UserInfo, userAgent: string, request: ApiRequest, watch: boolean, cancellation: Cancellation): ServerRequest {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(request.query ?? {})) {
    if (typeof value === 'string') query.append(key, value)
    else for (const one of value ?? []) query.append(key, one)
  }
  if (watch) query.set('watch', '1')
  const contentType = request.contentType ?? 'application/json'
  return {
    method: request.method,
    path: request.path.includes('%') ? decodeURIComponent(request.path) : request.path,
    query,
    headers: { accept: request.accept ?? 'application/json', 'user-agent': userAgent, 'content-type': contentType },
    remoteAddress: '',
    inProcessUser: user,
    receivedMs: 0,
    cancellation,
    // A text was encoded by the caller, such as the YAML of an apply.
    readBody: () =>
      Promise.resolve(
        typeof request.body === 'string'
          ? { type: 'bytes', bytes: Buffer.from(request.body), contentType }
          : { type: 'value', value: request.body, contentType },
      ),
    warnings: [],
  }
}

function failure(answer: Answer): StatusError {
  if (answer.type === 'value' && typeof answer.value === 'object' && answer.value !== null)
    return StatusError.fromStatus(answer.value as Partial<Status>, answer.status)
  const status = statusOf(answer)
  const text = answer.type === 'bytes' ? Buffer.from(answer.bytes).toString() : ''
  return new StatusError(status === 404 ? 'NotFound' : status === 503 ? 'ServiceUnavailable' : '', text || `the server answered ${status}`, { code: status })
}

/** The answer's value; a stream is read to its end. */
async function bodyOf(answer: Answer, documents: Documents): Promise<unknown> {
  switch (answer.type) {
    case 'object':
      // Reading the object may parse its bytes, and the write before may have encoded them.
      if (isLargeObject(answer.object.storedBytes ?? 0)) await turn()
      return answer.object.object
    case 'list':
      return deepFreeze(listValue(answer))
    case 'value':
      return deepFreeze(answer.value)
    case 'bytes': {
      if (!answer.contentType.startsWith('application/json')) return Buffer.from(answer.bytes).toString()
      const known = documents.get(answer.bytes) ?? deepFreeze(parseExactly(answer.bytes))
      documents.set(answer.bytes, known)
      return known
    }
    case 'stream':
      return bodyOf(await valueOfStream(answer), documents)
    case 'watch':
    case 'tunnel':
      throw new Error('this answer is no value: watches have their own call, tunnels need a connection')
  }
}
