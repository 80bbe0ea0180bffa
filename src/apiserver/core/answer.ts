/**
 * The answer of a stage or handler (L3), independent of the transport: over HTTP it is written as bytes, in process the objects are passed by
 * reference.
 */
import type { Duplex, Readable } from 'node:stream'
import type { Schema } from '#api/schema/schema'
import type { Clock } from '#base/clock'
import type { Exposition } from '#base/exposition'
import type { CachedObject } from './request.ts'
import type { EventForm } from './watch/watchEvent.ts'
import type { WatchSession } from './watch/watchSession.ts'

export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>

/** Encodings of a JSON value other than compact JSON. */
export type Encoding = 'yaml' | 'pretty' | 'protobuf'

/** A cached object, whose bytes are sent unchanged. */
export interface ObjectAnswer {
  readonly type: 'object'
  readonly status: number
  readonly object: CachedObject
  readonly encoding?: Encoding | undefined
}

export interface ListAnswer {
  readonly type: 'list'
  readonly apiVersion: string
  /** e.g. PodList. */
  readonly kind: string
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string | undefined; readonly remainingItemCount?: number | undefined }
  readonly items: readonly CachedObject[]
  /** Each item has its apiVersion and kind: lists of custom resources. */
  readonly typedItems?: boolean | undefined
  readonly encoding?: Encoding | undefined
}

/** Any other JSON value: Status, Table, reviews, discovery. */
export interface ValueAnswer {
  readonly type: 'value'
  readonly status: number
  readonly value: unknown
  /** For protobuf, of a kind that is no part of Kubernetes' own API. */
  readonly schema?: Schema | undefined
  readonly encoding?: Encoding | undefined
  readonly headers?: AnswerHeaders | undefined
}

export interface BytesAnswer {
  readonly type: 'bytes'
  readonly status: number
  readonly contentType: string
  readonly bytes: Uint8Array
  readonly headers?: AnswerHeaders | undefined
}

/** The form of a watch's events. */
export interface WatchForm {
  readonly form: EventForm
  /** The object of a bookmark in the watch's form. */
  bookmark(revision: number, annotations: Readonly<Record<string, string>> | undefined): unknown
}

export interface WatchAnswer extends WatchForm {
  readonly type: 'watch'
  readonly session: WatchSession
  /** The form of the stream's first event; absent: as all others. */
  readonly first?: WatchForm | undefined
  /** The server ends the stream after this time. */
  readonly timeoutMs: number
  readonly encoding?: Encoding | undefined
}

/** A body that is streamed from elsewhere: logs and proxied answers. */
export interface StreamAnswer {
  readonly type: 'stream'
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Readable
}

/** Hands over the connection itself: exec, attach, port-forward, proxied WebSockets. */
export interface TunnelAnswer {
  readonly type: 'tunnel'
  /** Resolves when the tunnel is closed; with an answer for the client when the backend did not switch protocols. `head`: what followed the request's head. */
  connect(socket: Duplex, head: Buffer, clock: Clock): Promise<BytesAnswer | undefined>
}

export type Answer = ObjectAnswer | ListAnswer | ValueAnswer | BytesAnswer | WatchAnswer | StreamAnswer | TunnelAnswer

/** The HTTP code of an answer. */
export function statusOf(answer: Answer): number {
  if (answer.type === 'tunnel') return 101
  return answer.type === 'list' || answer.type === 'watch' ? 200 : answer.status
}

export function textAnswer(status: number, text: string, headers?: AnswerHeaders): BytesAnswer {
  return { type: 'bytes', status, contentType: 'text/plain; charset=utf-8', bytes: Buffer.from(text), headers }
}

/** The answer to a scrape. */
export function expositionAnswer({ contentType, body }: Exposition): BytesAnswer {
  return { type: 'bytes', status: 200, contentType, bytes: typeof body === 'string' ? Buffer.from(body) : body }
}
