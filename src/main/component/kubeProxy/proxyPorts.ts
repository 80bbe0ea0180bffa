/**
 * The two ports of the service proxy (L5): health for load balancers, by default on every address, and metrics and configuration, by default on the loopback
 * address. Upstream: pkg/proxy/healthcheck/proxy_health.go, serveMetrics of cmd/kube-proxy/app/server.go (v1.36).
 */
import type { Clock } from '#base/clock'
import { HealthSlis } from '#base/healthSlis'
import type { Logger } from '#base/log'
import type { HealthReport, ProxyHealth } from '#proxy/health'
import { createHealthMetrics } from '#proxy/metrics'
import { scrapeComponent } from '../../componentMetrics.ts'
import type { PrometheusMetrics } from '../../prometheus.ts'
import { lazyPages } from '../lazyPages.ts'
import { type PlainAnswer, type PortAddress, plainPort } from './plainPort.ts'

export const healthPortNumber = 10_256
export const metricsPortNumber = 10_249

interface PortDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: PrometheusMetrics
  readonly onFailed?: ((error: Error) => void) | undefined
}

/** @param address by default port 10256 of all addresses. Paths: /healthz and /livez, which answer 200 or 503. */
export function createHealthPort(deps: PortDeps, health: ProxyHealth, address: PortAddress) {
  const counted = createHealthMetrics(deps.metrics)
  const answerOf = (page: keyof typeof counted, { isHealthy, body }: HealthReport): PlainAnswer => {
    const status = isHealthy ? 200 : 503
    counted[page].inc({ code: status })
    return { status, type: 'application/json', body: JSON.stringify(body) }
  }
  return plainPort({
    ...deps,
    name: 'kube-proxy health',
    address,
    answer: (path) => {
      if (path === '/healthz') return answerOf('healthz', health.healthz())
      return path === '/livez' ? answerOf('livez', health.livez()) : undefined
    },
  })
}

export interface MetricsPortParts {
  /** The mode that runs; empty: none was chosen yet. */
  mode(): string
  /** The configuration, as /configz shows it. */
  readonly configuration: unknown
  readonly flags: Readonly<Record<string, string>>
  readonly profiling: boolean
}

const textType = 'text/plain; charset=utf-8'
const paths = ['/configz', '/flagz', '/healthz', '/metrics', '/metrics/slis', '/proxyMode', '/statusz']

/** @param address by default port 10249 of the loopback address. Paths: /metrics, /healthz, /proxyMode, /configz, /flagz, /statusz, and /debug/pprof with profiling. */
export function createMetricsPort(deps: PortDeps, { mode, configuration, flags, profiling }: MetricsPortParts, address: PortAddress) {
  const { clock, metrics } = deps
  const slis = new HealthSlis()
  const pages = lazyPages({ component: 'kube-proxy', paths: profiling ? [...paths, '/debug/pprof'].sort() : paths, clock, flags, profiling })
  const text = (body: string, type = textType): PlainAnswer => ({ status: 200, type, body })
  return plainPort({
    ...deps,
    name: 'kube-proxy metrics',
    address,
    async answer(path, request) {
      const { accept } = request.headers
      if (path === '/metrics') return scraped(await scrapeComponent(metrics, accept))
      if (path === '/metrics/slis') return scraped((await import('#base/exposition')).exposition(slis.families(), accept))
      if (path === '/proxyMode') return text(mode())
      if (path === '/configz') return text(JSON.stringify({ 'kubeproxy.config.k8s.io': configuration }), 'application/json')
      if (/^\/healthz(\/ping)?\/?$/.test(path)) {
        slis.observe('ping', 'healthz', true)
        return text('ok')
      }
      const page = await pages(request)
      return page && { status: page.code ?? 200, type: page.type === 'json' ? 'application/json' : page.type, body: page.body as string | Uint8Array }
    },
  })
}

function scraped({ contentType, body }: { readonly contentType: string; readonly body: string | Uint8Array }): PlainAnswer {
  return { status: 200, type: contentType, body }
}

/** Both ports with upstream's defaults, on a node whose primary address is of the family. */
export function defaultAddresses(isIpv6: boolean): { readonly health: PortAddress; readonly metrics: PortAddress } {
  return {
    health: { host: isIpv6 ? '::' : '0.0.0.0', port: healthPortNumber },
    metrics: { host: isIpv6 ? '::1' : '127.0.0.1', port: metricsPortNumber },
  }
}
