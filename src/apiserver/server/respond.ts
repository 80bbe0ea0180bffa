/**
 * Writes an answer to a client (L3): headers, gzip, watches with back-pressure, streamed bodies.
 */

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip, gzip } from 'node:zlib'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { isStatus } from '#api/machinery/status'
import { toYaml } from '#api/machinery/yaml'
import { encodeWatchFrame, protobufMediaType } from '#api/protobuf/envelope'
import type { Clock } from '#base/clock'
import { type Answer, type Encoding, type ListAnswer, statusOf, type WatchAnswer } from '../core/answer.ts'
import type { Cancellation } from '../core/cancellation.ts'
import { encodeAnswer, encodeList, protobufOf } from '../core/encode.ts'
import { bodyOf, chunkBytes, lengthOf, type Pieces } from '../core/pieces.ts'
import type { ServerRequest } from '../core/request.ts'
import type { WatchItem } from '../core/watch/watchSession.ts'

export type HeaderMap = Record<string, string | readonly string[]>

/** One response of either protocol. */
export interface Outgoing {
  /** `flush`: send the headers at once, before the body. */
  start(status: number, headers: HeaderMap, flush?: boolean): void
  /** False: wait for `drained` before writing more. */
  write(chunk: Uint8Array): boolean
  drained(): Promise<void>
  end(chunk?: Uint8Array): void
  /** Ends with these pieces, which must not change. A promise resolves when they are written, or when the client is gone. */
  endWith(pieces: Pieces): Promise<void> | undefined
  /** Breaks the stream off without an answer. */
  abort(): void
  /** The stream itself, for piping. */
  readonly stream: NodeJS.WritableStream
}

/** Answers with these codes have no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])
/** Upstream's threshold for compressing answers. */
const gzipFromBytes = 128 * 1024
const compress = promisify(gzip)
/** Bytes that a watch writes at a time, unless one object is longer. */
export const portionBytes = 256 * 1024
/** Time limit for each portion of a watch's initial events; a list has as long in total. */
const startWithinMs = 60_000
const hangUpMs = 10_000
export const initialEventsEnd: Readonly<Record<string, string>> = { 'k8s.io/initial-events-end': 'true' }

export async function respond(request: ServerRequest, answer: Answer, out: Outgoing, clock: Clock): Promise<void> {
  const headers: HeaderMap = request.responseHeaders ?? {}
  if (answer.type === 'watch') return respondWatch(request, answer, out, headers, clock)
  if (answer.type === 'stream') {
    out.start(answer.status, { ...headers, ...answer.headers }, true)
    if (request.method === 'HEAD' || bodiless.has(answer.status)) {
      answer.body.resume()
      out.end()
      return
    }
    await pipeline(answer.body, out.stream)
    return
  }
  if (answer.type === 'tunnel') {
    out.start(400, { ...headers, 'content-length': '0' })
    out.end()
    return
  }
  if (answer.type === 'list') return respondList(request, answer, out, headers)
  const { contentType, bytes } = encodeAnswer(answer)
  if (contentType) headers['content-type'] = contentType
  if ('headers' in answer) Object.assign(headers, answer.headers)
  await respondWhole(request, statusOf(answer), bytes, out, headers)
}

/** Writes a list piece by piece, compressed if the client accepts that. */
async function respondList(request: ServerRequest, answer: ListAnswer, out: Outgoing, headers: HeaderMap): Promise<void> {
  const { contentType, pieces } = await encodeList(answer)
  const length = lengthOf(pieces)
  headers['content-type'] = contentType
  if (length >= gzipFromBytes && acceptsGzip(request)) {
    const body = bodyOf(pieces, length)
    if (body instanceof Uint8Array) return respondWhole(request, 200, body, out, headers)
    out.start(200, Object.assign(headers, compressed))
    if (request.method === 'HEAD') return out.end()
    return pipeline(Readable.from(body), createGzip({ level: 1 }), out.stream)
  }
  headers['content-length'] = String(length)
  request.meter?.body(length)
  out.start(200, headers)
  if (request.method === 'HEAD') return out.end()
  await out.endWith(pieces)
}

const compressed: Readonly<HeaderMap> = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' }

async function respondWhole(request: ServerRequest, status: number, bytes: Uint8Array, out: Outgoing, headers: HeaderMap): Promise<void> {
  const body = bytes.length >= gzipFromBytes && acceptsGzip(request) ? await compress(bytes, { level: 1 }) : bytes
  if (body !== bytes) Object.assign(headers, compressed)
  if (status !== 204 && status !== 304) headers['content-length'] = String(body.length)
  request.meter?.body(body.length)
  out.start(status, headers)
  if (request.method === 'HEAD') out.end()
  // Encrypting many megabytes takes long: others have their turn between the parts.
  else if (body.length > portionBytes) await out.endWith(portionsOf(body))
  else out.end(body)
}

function portionsOf(bytes: Uint8Array): Pieces {
  const portions: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) portions.push(bytes.subarray(at, at + chunkBytes))
  return portions
}

function acceptsGzip(request: ServerRequest): boolean {
  const accepted = request.headers['accept-encoding']
  return typeof accepted === 'string' && accepted.includes('gzip')
}

async function respondWatch(request: ServerRequest, answer: WatchAnswer, out: Outgoing, headers: HeaderMap, clock: Clock): Promise<void> {
  const { session } = answer
  const close = () => session.close()
  const timer = clock.timer(answer.timeoutMs, close)
  let goOn = () => {}
  session.whenClosed(() => goOn())
  // A watch that was ended because its client is too slow must not wait for that client.
  const drainedOrClosed = () =>
    new Promise<void>((resolve, reject) => {
      goOn = resolve
      if (session.ended) resolve()
      out.drained().then(resolve, reject)
    })
  const { signal } = request.cancellation
  if (signal.aborted) close()
  else signal.addEventListener('abort', close, { once: true })
  out.start(200, { ...headers, 'content-type': watchTypes[answer.encoding ?? 'pretty'] }, true)
  const giveUp = () => {
    session.cutOff()
    out.abort()
  }
  try {
    const encode = (item: WatchItem) => encodeItem(answer, item)
    let { first } = answer
    let { meter } = request
    const form = `${answer.encoding ?? 'pretty'} ${answer.form.key}`
    for (;;) {
      const items = session.take(portionBytes)
      if (!items || request.cancellation.aborted) break
      if (items.length === 0) {
        await session.ready()
        continue
      }
      const pending = session.prepared(items)
      if (pending) await pending
      const bytes = first ? Buffer.concat(items.map((item, at) => encodeItem(formAt(answer, at), item))) : session.batches.bytes(items, form, encode)
      first = undefined
      if (meter && items.some((item) => item.type === 'BOOKMARK' && item.initialEventsEnd)) {
        meter.initialEvents()
        meter = undefined
      }
      if (out.write(bytes)) continue
      const late = session.isStarting ? clock.timer(startWithinMs, giveUp) : undefined
      await drainedOrClosed()
      late?.cancel()
      if (session.ended) hangUpLater(out, clock)
    }
    out.end()
  } catch (error) {
    if (!isStatus(error)) throw error
    const object = error.toStatus()
    const json = Buffer.from(`${JSON.stringify({ type: 'ERROR', object })}\n`)
    out.end(answer.encoding === 'protobuf' ? Buffer.from(encodeWatchFrame('ERROR', protobufOf(object))) : json)
  } finally {
    timer.cancel()
    session.close()
    signal.removeEventListener('abort', close)
  }
}

/** After a watch was cut off, the client may read sent bytes for a while; then the connection is closed, even if it is never read. */
function hangUpLater(out: Outgoing, clock: Clock): void {
  const timer = clock.timer(hangUpMs, () => out.abort())
  void out.drained().then(() => timer.cancel())
}

const watchTypes: Readonly<Record<Encoding, string>> = {
  yaml: 'application/yaml',
  pretty: 'application/json',
  protobuf: `${protobufMediaType};stream=watch`,
}

function encodeItem(answer: WatchAnswer, item: WatchItem): Buffer {
  const { encoding = 'pretty', form } = answer
  if (item.type === 'BOOKMARK') return encodeItemValue(answer, item)
  return encoding === 'pretty' ? item.encoded(form) : item.encodedAs(`${encoding} ${form.key}`, () => encodeItemValue(answer, item))
}

function encodeItemValue(answer: WatchAnswer, item: WatchItem): Buffer {
  const value = itemValue(answer, item)
  if (answer.encoding === 'yaml') return Buffer.from(`---\n${toYaml(value)}`)
  if (answer.encoding === 'protobuf') return Buffer.from(encodeWatchFrame(value.type, protobufOf(value.object)))
  return Buffer.from(`${stringifyExactly(value)}\n`)
}

/** The form of the answer for the event at this place of the stream. */
export function formAt(answer: WatchAnswer, place: number): WatchAnswer {
  return place === 0 && answer.first ? { ...answer, ...answer.first } : answer
}

/** A watch item as a value, for the in-process transport. */
export function itemValue(answer: WatchAnswer, item: WatchItem): { type: WatchItem['type']; object: unknown } {
  if (item.type === 'BOOKMARK') return { type: item.type, object: answer.bookmark(item.revision, item.initialEventsEnd ? initialEventsEnd : undefined) }
  const object = item.entry.view(answer.form.view)
  return { type: item.type, object: answer.form.value ? answer.form.value(object) : object.object }
}

/** Resolves when more can be written, or when the client is gone. */
export function drained(stream: NodeJS.WritableStream, { signal }: Cancellation): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      stream.removeListener('drain', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    stream.on('drain', done)
    signal.addEventListener('abort', done, { once: true })
  })
}
