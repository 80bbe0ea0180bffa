/**
 * One request as it travels through the pipeline (L3): what came in, what the stages found out, and how it will be answered.
 * The same shape serves HTTP/2, HTTP/1.1 and the in-process transport, so every stage runs for all three.
 */
import type { Readable } from 'node:stream'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Cancellation } from './cancellation.ts'

/** The authenticated user: authentication.k8s.io UserInfo. */
export interface UserInfo {
  readonly name: string
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

/** What the path and method mean. Upstream: apiserver/pkg/endpoints/request/requestinfo.go. */
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

/** A decision of one stage, for traces, audit, metrics and explain. */
export interface TraceEntry {
  readonly stage: string
  readonly decision: string
  readonly durationMs: number
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
  /** The query as sent, without its question mark, for those that pass it on. Absent for callers in this process. */
  readonly rawQuery?: string | undefined
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly remoteAddress: string
  readonly peerCertificate?: PeerCertificate | undefined
  /** Set by the in-process transport, whose caller the composition root vouches for. */
  readonly inProcessUser?: UserInfo | undefined
  /** Cancelled when the client is gone or the request's time is over. */
  readonly cancellation: Cancellation
  /** Reads the whole body, at most `limitBytes` (RequestEntityTooLarge beyond); in-process callers hand over a value instead. */
  readBody(limitBytes: number): Promise<RequestBody>
  /** How long the body is that was read. Absent: none was, or it is a value of this process. */
  readonly bodyBytes?: number | undefined
  /** The body as it arrives, for those that pass it on instead of reading it. Absent: there is none, or the caller is in this process. */
  readonly body?: Readable | undefined
  /** Absent in this process. */
  readonly isHttp2?: boolean | undefined
  /** Headers that stages add to the answer, lower-case; the answer's own win. Absent for callers in this process, who would not see them. */
  readonly responseHeaders?: Record<string, string | readonly string[]> | undefined
  // Filled in by the stages:
  /** Milliseconds since the epoch. */
  receivedMs: number
  /** It came before the server knew all its paths: "not found" would be a guess. */
  pathsIncomplete?: boolean
  /** Time limit of the request; undefined: none. */
  timeoutMs?: number
  info?: RequestInfo
  user?: UserInfo
  /** The authenticated user before impersonation. */
  originalUser?: UserInfo
  /** Duration of authentication. Absent: not measured. */
  authenticationMs?: number
  /** The verb that allowed an impersonation, where it is one of the narrow ones. */
  impersonationConstraint?: string
  auditId?: string
  readonly warnings: string[]
  /** Annotations that stages add to the audit event, by key. Absent: none. */
  auditAnnotations?: Readonly<Record<string, string>>
  /** Annotations that admission adds to the audit event. Set by the audit stage; undefined: the request is not audited. */
  admissionAnnotations?: AuditAnnotation[] | undefined
  /** Records bodies for the audit log. Undefined: the request is not audited. */
  audit?: RequestAudit | undefined
  /** Undefined when tracing is off. */
  readonly trace?: TraceEntry[] | undefined
}

/** Records bodies for the audit log; cheap if the policy does not include them. */
export interface RequestAudit {
  /** The object of a body, decoded and defaulted, before admission changes it. */
  requestObject(object: object): void
  requestPatch(body: RequestBody): void
  /** The first value of a key stays. */
  annotate(key: string, value: string): void
  /** Some of the request's time went into this. */
  spent(on: LatencyLayer, ms: number): void
}

/** Where the time of a request goes, as the audit log names it. */
export type LatencyLayer = 'apf-queue-wait' | 'authentication' | 'authorization' | 'etcd' | 'impersonation' | 'mutating-webhook' | 'validating-webhook'

export interface AuditAnnotation {
  readonly key: string
  readonly value: string
  /** The least level of an event that shows it. */
  readonly level: 'Metadata' | 'Request'
}

/** Path and query, for logs and audit. */
export function requestUri({ path, query }: ServerRequest): string {
  return query.size > 0 ? `${path}?${query}` : path
}

export type RequestBody =
  | { readonly type: 'bytes'; readonly bytes: Buffer; readonly contentType: string }
  | { readonly type: 'value'; readonly value: unknown; readonly contentType: string }

/** An object as the cache holds it: its canonical JSON bytes, and the object, which is parsed on first use and deep-frozen. */
export interface CachedObject {
  readonly bytes: Uint8Array
  readonly object: Frozen<KubeObject>
  readonly resourceVersion: number
  /** The protobuf message without its envelope; set on first use. */
  protobuf?: Uint8Array | undefined
  /** The bytes after the type, which items of a list do not repeat; set when it is first listed. */
  untypedTail?: Uint8Array | undefined
}
