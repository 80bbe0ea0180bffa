/** The proxy as a whole (L3): its listeners with what they share. */
import { Agent } from 'node:http'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { defaultLimits, type ProxyLimits } from './config.ts'
import { createH2Sessions } from './h2Sessions.ts'
import { type Listener, type ListenerOptions, listen, type TlsOfListener } from './listeners.ts'
import type { Router } from './proxyDeps.ts'
import { createProxyMetrics } from './proxyMetrics.ts'

export interface ProxyOptions {
  readonly http: ListenerOptions
  readonly https: ListenerOptions
  readonly tls: TlsOfListener
  readonly limits?: Partial<ProxyLimits> | undefined
}

export interface RunningProxy {
  readonly httpPort: number
  readonly httpsPort: number
  /** Opens one more port, which its caller closes. @param tls undefined: in clear text */
  open(options: ListenerOptions, tls?: TlsOfListener): Promise<Listener>
  /** Ends connections with their last answers. */
  close(): Promise<void>
}

/** Idle connections to one endpoint. */
const maxIdle = 64
/** Shorter than servers usually keep idle connections, which may close one at any moment. */
const idleMs = 4000

export async function startProxy(
  deps: { readonly router: Router; readonly clock: Clock; readonly log: Logger; readonly metrics: Metrics },
  options: ProxyOptions,
): Promise<RunningProxy> {
  let draining = false
  const agent = new Agent({ keepAlive: true, maxFreeSockets: maxIdle, timeout: idleMs, noDelay: true })
  const limits = { ...defaultLimits, ...options.limits }
  const h2Sessions = createH2Sessions(deps.clock, limits.connectTimeoutMs)
  const shared = {
    ...deps,
    metrics: createProxyMetrics(deps.metrics),
    limits,
    agent,
    h2Sessions,
    freshAgent: new Agent({ keepAlive: false }),
    isDraining: () => draining,
  }
  const http = await listen(shared, options.http)
  const https = await listen(shared, options.https, options.tls).catch(async (error) => {
    await http.close()
    throw error
  })
  return {
    httpPort: http.port,
    httpsPort: https.port,
    open: (more, tls) => listen(shared, more, tls),
    async close() {
      draining = true
      await Promise.all([http.close(), https.close()])
      agent.destroy()
      h2Sessions.close()
    },
  }
}
