/** What every part of the proxy is given (L3). */
import type { Agent } from 'node:http'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Route } from '../model/routingTable.ts'
import type { Backend } from './backend.ts'
import type { ProxyLimits } from './config.ts'
import type { ProxyMetrics } from './proxyMetrics.ts'

/** What the proxy asks about each request. */
export interface Router {
  route(host: string, path: string): Route | undefined
  backendOf(route: Route): Backend
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
  readonly isDraining: () => boolean
}

/** The listener that a request came in by. */
export interface Entrance {
  readonly scheme: 'http' | 'https'
  /** The port that clients connect to. */
  readonly port: number
}
