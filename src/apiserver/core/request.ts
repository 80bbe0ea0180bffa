/**
 * One request in the pipeline (L3): its input, the results of the stages, and its answer's headers.
 * The same shape serves HTTP/2, HTTP/1.1 and the in-process transport, so every stage runs for all three.
 */
import type { Readable } from 'node:stream'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { SpanContext } from '#base/traceContext'
import type { RequestTracer } from '#trace/requestTracer'
import type { Cancellation } from './cancellation.ts'

/** The authenticated user: authentication.k8s.io UserInfo. */
export interface UserInfo {
  readonly name: string
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

/** The parsed path and method. Upstream: apiserver/pkg/endpoints/request/requestinfo.go. */
export interface RequestInfo {
  readonly isResourceRequest: boolean
  readonly path: string
  /** get, list, watch, create, update, patch, delete, deletecollection, proxy; or the lower-case HTTP method for non-resource paths. */
  readonly verb: string
  readonly apiPrefix: string
  readonly apiGroup: string
  readonly apiVersion: string
  readonly namespace: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
  /** Path segments after the resource (proxy paths). */
  readonly parts: readonly string[]
  readonly fieldSelector?: string | undefined
  readonly labelSelector?: string | undefined
  /** The path itself names the verb: `/api/v1/watch/pods`. */
  readonly isVerbByPath?: boolean | undefined
}

/** The peer's client certificate, verified by TLS against the client CA or not at all. */
export interface PeerCertificate {
  /** DER. */
  readonly raw: Uint8Array
  /** The chain leads to a CA that this server trusts for clients, and the times are right. */
  readonly verified: boolean
  /** The certificate chain ends at the front proxies' authority: the peer may set the identity headers. */
  readonly isFrontProxy?: boolean | undefined
  readonly verifyError?: string | undefined
}

export interface ServerRequest {
  readonly method: string
  /** Decoded once, as upstream: no dot segments; starts with '/'. */
  readonly path: string
  readonly query: URLSearchParams
  /** The query as sent, without its question mark, for proxying. Absent for callers in this process. */
  readonly rawQuery?: string | undefined
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly remoteAddress: string
  readonly peerCertificate?: PeerCertificate | undefined
  /** The user of the in-process transport, which needs no authentication. */
  readonly inProcessUser?: UserInfo | undefined
  /** Cancelled when the client is gone or the request's time is over. */
  readonly cancellation: Cancellation
  /** Reads the whole body, at most `limitBytes` (RequestEntityTooLarge beyond); in-process callers pass a value instead. */
  readBody(limitBytes: number): Promise<RequestBody>
  /** Length of the body that was read. Absent: none was read, or it is an in-process value. */
  readonly bodyBytes?: number | undefined
  /** The body as a stream, for proxying. Absent: there is none, or the caller is in this process. */
  readonly body?: Readable | undefined
  /** Absent for callers in this process. */
  readonly isHttp2?: boolean | undefined
  /** Headers that stages add to the answer, lower-case; the answer's own win. Absent for callers in this process, which do not get headers. */
  readonly responseHeaders?: Record<string, string | readonly string[]> | undefined
  // Filled in by the stages:
  /** Measures what is sent to a client outside of this process. Absent: nothing is measured. */
  meter?: ResponseMeter
  /** Milliseconds since the epoch. */
  receivedMs: number
  /** The request arrived before all paths were registered: "not found" could be wrong. */
  pathsIncomplete?: boolean
  /** Time limit of the request; undefined: none. */
  timeoutMs?: number
  info?: RequestInfo
  user?: UserInfo
  /** The authenticated user before impersonation. */
  originalUser?: UserInfo
  /** Duration of authentication. Absent: not measured. */
  authenticationMs?: number
  /** The verb that allowed a constrained impersonation. */
  impersonationConstraint?: string
  /** True when the request reached a resource or version that is deprecated. Set by the router. */
  deprecated?: boolean
  auditId?: string
  readonly warnings: string[]
  /** Annotations that stages add to the audit event, by key. Absent: none. */
  auditAnnotations?: Readonly<Record<string, string>>
  /** Annotations that admission adds to the audit event. Set by the audit stage; undefined: the request is not audited. */
  admissionAnnotations?: AuditAnnotation[] | undefined
  /** Records bodies for the audit log. Undefined: the request is not audited. */
  audit?: RequestAudit | undefined
  /** Time in webhooks and in queues of priority and fairness, which the server's objectives leave out. Absent: none. */
  excludedMs?: number
  /** The server ended the request to protect itself. */
  terminated?: boolean
  /** The request's span. Set by the tracing stage; undefined: the trace is not sampled. */
  span?: SpanContext | undefined
  /** Records what the stages decide. Undefined: the request has no reader. */
  trace?: RequestTracer | undefined
  /** The stage or admission plugin that refused the request, where its error does not tell. */
  refusedBy?: string
}

export interface ResponseMeter {
  /** The whole body is known: its length as it is sent. */
  body(bytes: number): void
  /** The initial events of a streaming list are written. */
  initialEvents(): void
}

/** Records bodies for the audit log; cheap if the policy does not include them. */
export interface RequestAudit {
  /** The object of a body, decoded and defaulted, before admission changes it. */
  requestObject(object: object): void
  requestPatch(body: RequestBody): void
  /** The first value of a key stays. */
  annotate(key: string, value: string): void
  /** Adds time that the request spent in a layer. */
  spent(on: LatencyLayer, ms: number): void
}

/** Layers whose latency the audit log records, by upstream's names. */
export type LatencyLayer =
  | 'apf-queue-wait'
  | 'authentication'
  | 'authorization'
  | 'decode-response-object'
  | 'etcd'
  | 'impersonation'
  | 'mutating-webhook'
  | 'transform-response-object'
  | 'validating-webhook'

export interface AuditAnnotation {
  readonly key: string
  readonly value: string
  /** The lowest audit level whose events include it. */
  readonly level: 'Metadata' | 'Request'
}

/** Path and query, for logs and audit. */
export function requestUri({ path, query }: ServerRequest): string {
  return query.size > 0 ? `${path}?${query}` : path
}

export type RequestBody =
  | { readonly type: 'bytes'; readonly bytes: Buffer; readonly contentType: string; readonly parsed?: ParsedBody }
  | { readonly type: 'value'; readonly value: unknown; readonly contentType: string }

/** The value of a body that has been parsed; it belongs to who reads the body. */
export interface ParsedBody {
  readonly value: unknown
  /** Paths of fields that occur twice, where that was asked for. */
  readonly duplicates: readonly string[]
}

/** An object as the cache holds it: its canonical JSON bytes, and the object, which is parsed on first use and deep-frozen. */
export interface CachedObject {
  readonly bytes: Uint8Array
  readonly object: Frozen<KubeObject>
  readonly resourceVersion: number
  /** Length of the stored value, where one stands behind the object. */
  readonly storedBytes?: number | undefined
  /** The protobuf message without its envelope; set on first use. */
  protobuf?: Uint8Array | undefined
  /** The bytes after the type, which items of a list do not repeat; set when it is first listed. */
  untypedTail?: Uint8Array | undefined
}
