/**
 * What a Client stands on (L2): requests and watches as values. Over HTTP it is the wire; in one process it calls the API server's
 * pipeline without encoding. Both take the same identity checks on the server's side.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Starts with '/', no query. Segments are already percent-encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  /** A JSON value; the transport encodes it if it must. */
  readonly body?: unknown
  /** Default application/json; patches name theirs. */
  readonly contentType?: string | undefined
  /** Default application/json; Table and PartialObjectMetadata name theirs. */
  readonly accept?: string | undefined
}

export interface ApiResponse {
  readonly status: number
  /** The decoded object, deep-frozen; it may be shared with the server's cache. A string for text/plain answers. */
  readonly body: unknown
  /** Texts of `Warning: 299` headers. */
  readonly warnings: readonly string[]
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

export interface WatchEvent<T = Frozen<KubeObject>> {
  readonly type: WatchEventType
  readonly object: T
}

export interface Transport {
  /** Throws StatusError for every answer of 400 and above; other errors mean that no answer came. */
  request(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse>
  /**
   * Opens a watch (`watch=1` is added). The iteration ends when the server ends the stream; it throws StatusError for an ERROR event
   * (Expired after compaction) or a refused request, another error when the connection breaks.
   * Each item is a batch of events that were ready together: consumers handle a batch before they yield.
   */
  watch(request: ApiRequest, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]>
}
