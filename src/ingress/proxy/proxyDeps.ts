/** What every part of the proxy is given (L3). */
import type { Agent } from 'node:http'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Asked, BackendRef, BackendTls, Route, StreamRoute } from '../model/route.ts'
import type { Backend } from './backend.ts'
import type { TlsTo } from './backendTls.ts'
import type { ProxyLimits } from './config.ts'
import type { H2Sessions } from './h2Sessions.ts'
import type { ProxyMetrics } from './proxyMetrics.ts'

/** What the proxy asks about each request and each connection. */
export interface Router {
  /** A status code: the request is answered with it. @param serverName of the TLS connection */
  route(asked: Asked, entrance: Entrance, serverName: string | undefined): Route | number
  /** Undefined: the connection is ended. @param serverName in lower case; empty: the client names none */
  stream(serverName: string, entrance: Entrance): StreamRoute | undefined
  backendOf(ref: BackendRef): Backend
}

export interface ProxyDeps {
  readonly router: Router
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: ProxyMetrics
  readonly limits: ProxyLimits
  /** Keeps connections to endpoints. */
  readonly agent: Agent
  /** Makes a connection for each request. */
  readonly freshAgent: Agent
  readonly tlsTo: (tls: BackendTls) => TlsTo
  /** Connections to endpoints that speak HTTP/2. */
  readonly h2Sessions: H2Sessions
  readonly isDraining: () => boolean
}

/** The listener that a request came in by. */
export interface Entrance {
  readonly scheme: 'http' | 'https'
  /** The port that clients connect to. */
  readonly port: number
  /** `namespace/name` of the Gateway whose routes answer; undefined: Ingresses do. */
  readonly gateway?: string | undefined
}
