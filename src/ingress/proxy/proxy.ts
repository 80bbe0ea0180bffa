/** The proxy as a whole (L3): its listeners with what they share. */
import { Agent } from 'node:http'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { createBackendTls } from './backendTls.ts'
import { defaultLimits, type ProxyLimits } from './config.ts'
import { createH2Sessions } from './h2Sessions.ts'
import { listen } from './listeners.ts'
import type { Listener, ListenerOptions } from './openPort.ts'
import type { Router } from './proxyDeps.ts'
import { createProxyMetrics } from './proxyMetrics.ts'
import { listenForStreams } from './streams.ts'
import type { TlsOfListener } from './tlsOptions.ts'

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
  /** Opens one more port for connections that are routed by their server names. */
  openStreams(options: ListenerOptions, tls: TlsOfListener): Promise<Listener>
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
  const keeping = { keepAlive: true, maxFreeSockets: maxIdle, timeout: idleMs, noDelay: true }
  const agent = new Agent(keeping)
  const tlsTo = createBackendTls(keeping)
  const limits = { ...defaultLimits, ...options.limits }
  const h2Sessions = createH2Sessions(deps.clock, limits.connectTimeoutMs, tlsTo)
  const shared = {
    ...deps,
    metrics: createProxyMetrics(deps.metrics),
    limits,
    agent,
    tlsTo,
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
    openStreams: (more, tls) => listenForStreams(shared, more, tls),
    async close() {
      draining = true
      await Promise.all([http.close(), https.close()])
      agent.destroy()
      h2Sessions.close()
    },
  }
}
