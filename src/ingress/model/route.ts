/** Where a request goes, and what is changed on its way (L3, pure): the one form that Ingresses and the routes of Gateways are compiled into. */
import type { PathPattern } from './hostRoutes.ts'

/** What a request is matched by. */
export interface Asked {
  readonly host: string
  /** In the form of comparablePath(). */
  readonly path: string
  /** As the client wrote it, with the query. */
  readonly url: string
  readonly method: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** One of these names is in the certificate of a backend. */
export interface SubjectAltName {
  readonly type: 'Hostname' | 'URI'
  readonly value: string
}

/** How a backend is verified that is spoken to over TLS. */
export interface BackendTls {
  /** Differs whenever anything else here does. */
  readonly id: string
  /** The server name, which the certificate is for unless there are other names. */
  readonly hostname: string
  /** PEM; undefined: those that are known to all. */
  readonly authorities: string | undefined
  readonly subjectAltNames: readonly SubjectAltName[]
}

/** A port of a Service, by its number or its name. */
export interface BackendRef {
  /** `namespace/name` of the Service. */
  readonly service: string
  readonly port: number | string
  /** What its pods speak; default: HTTP/1.1. */
  readonly protocol?: 'h2' | undefined
  /** Undefined: in clear text. Unverifiable: it must not be, and nothing says how it is verified, so that all fails. */
  readonly tls?: BackendTls | 'unverifiable' | undefined
}

export interface HeaderChanges {
  /** Names and values. */
  readonly set: readonly (readonly [name: string, value: string])[]
  readonly add: readonly (readonly [name: string, value: string])[]
  /** In lower case. */
  readonly remove: ReadonlySet<string>
}

/** In place of the whole path, or of the prefix that the request was matched by. */
export interface PathChange {
  readonly replaces: 'path' | 'prefix'
  readonly path: string
}

export interface Redirect {
  readonly status: number
  readonly scheme?: string | undefined
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly path?: PathChange | undefined
}

export interface Rewrite {
  readonly host?: string | undefined
  readonly path?: PathChange | undefined
}

/** The origins whose pages may use the route, and what they may do. */
export interface Cors {
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposed: readonly string[]
  readonly withCredentials: boolean
  readonly maxAgeSeconds: number
}

/** A backend that gets copies of requests; its answers are dropped. */
export interface Mirror {
  readonly backend: BackendRef
  /** The share of the requests, up to 1. */
  readonly share: number
}

export interface Route {
  /** Undefined: it does not exist, and the request gets 500. */
  readonly backend: BackendRef | undefined
  /** What the request was matched by. */
  readonly pattern?: PathPattern | undefined
  readonly requestHeaders?: readonly HeaderChanges[] | undefined
  readonly responseHeaders?: readonly HeaderChanges[] | undefined
  readonly redirect?: Redirect | undefined
  readonly rewrite?: Rewrite | undefined
  readonly mirrors?: readonly Mirror[] | undefined
  readonly cors?: Cors | undefined
  /** For the whole answer, from the request's arrival. */
  readonly timeoutMs?: number | undefined
  /** For one attempt at a backend. */
  readonly backendTimeoutMs?: number | undefined
}

/** Where a TLS connection goes. */
export interface StreamRoute {
  /** The bytes are passed on as they are; otherwise TLS ends at the proxy. */
  readonly isPassthrough: boolean
  readonly backend: BackendRef
}
