/** Counts and times what the kubelet is asked (L3). Upstream: kubelet/server/metrics/metrics.go, server.go ServeHTTP (v1.36). */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'

const methods = new Set(['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'CONNECT'])
const roots = new Set(
  'attach checkpoint configz containerLogs debug exec healthz logs metrics metrics/cadvisor metrics/probes metrics/resource pods portForward run runningpods stats'.split(
    ' ',
  ),
)
const longRunning = new Set(['exec', 'attach', 'portforward', 'debug'])
const labels = ['method', 'path', 'server_type', 'long_running'] as const

/** Paths that the kubelet does not know are one series: strangers must not make new ones. */
export function bucketOf(path: string): string {
  const [first = '', second] = path.split('/').slice(1)
  const root = first === 'metrics' && second !== undefined ? `${first}/${second}` : first
  return roots.has(root) ? root : 'other'
}

/** Call at the beginning of a request; what it returns, at its end. */
export function createRequestMetrics(metrics: Metrics, clock: Clock): (method: string, path: string) => () => void {
  const total = metrics.counter({ name: 'kubelet_http_requests_total', help: 'Number of the http requests received since the server started', labels })
  const inflight = metrics.gauge({ name: 'kubelet_http_inflight_requests', help: 'Number of the inflight http requests', labels })
  const duration = metrics.histogram({ name: 'kubelet_http_requests_duration_seconds', help: 'Duration in seconds to serve http requests', labels })
  return (method, path) => {
    const bucket = bucketOf(path)
    const series = { method: methods.has(method) ? method : 'other', path: bucket, server_type: 'readwrite', long_running: String(longRunning.has(bucket)) }
    total.inc(series)
    inflight.inc(series)
    const startedMs = clock.monotonicMs()
    return () => {
      inflight.dec(series)
      duration.observe((clock.monotonicMs() - startedMs) / 1000, series)
    }
  }
}
