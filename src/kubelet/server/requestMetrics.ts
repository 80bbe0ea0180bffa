/** Counts and measures requests to the kubelet (L3). Upstream: kubelet/server/metrics/metrics.go, server.go ServeHTTP (v1.36). */
import type { IncomingHttpHeaders } from 'node:http'
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'

const methods = new Set(['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'CONNECT'])
const roots = new Set(
  'attach checkpoint configz containerLogs debug exec flagz healthz logs metrics metrics/cadvisor metrics/probes metrics/resource pods portForward run runningpods stats statusz'.split(
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

export type RequestMetrics = (method: string, path: string) => () => void

/** Call what it returns at the beginning of a request, and what that returns, at its end. */
export function createRequestMetrics(metrics: Metrics, clock: Clock, serverType: 'readwrite' | 'readonly' = 'readwrite'): RequestMetrics {
  const total = metrics.counter({ name: 'kubelet_http_requests_total', help: 'How many requests have come.', labels })
  const inflight = metrics.gauge({ name: 'kubelet_http_inflight_requests', help: 'How many requests are being answered.', labels })
  const duration = metrics.histogram({ name: 'kubelet_http_requests_duration_seconds', help: 'How long answers took, in seconds.', labels })
  return (method, path) => {
    const bucket = bucketOf(path)
    const series = { method: methods.has(method) ? method : 'other', path: bucket, server_type: serverType, long_running: String(longRunning.has(bucket)) }
    total.inc(series)
    inflight.inc(series)
    const startedMs = clock.monotonicMs()
    return () => {
      inflight.dec(series)
      duration.observe((clock.monotonicMs() - startedMs) / 1000, series)
    }
  }
}

const webSocketProtocols: Readonly<Record<string, string>> = bareMap({
  exec: 'v5.channel.k8s.io',
  attach: 'v5.channel.k8s.io',
  portForward: 'SPDY/3.1+portforward.k8s.io',
})

/** Counts WebSocket streams to the kubelet itself; called with the path's first segment and the client's headers. */
export function createStreamMetrics(metrics: Metrics): (what: string, headers: IncomingHttpHeaders) => void {
  const total = metrics.counter({
    name: 'kubelet_websocket_streaming_requests_total',
    help: 'Number of exec, attach and port-forward requests that came as WebSockets.',
    labels: ['subresource'],
  })
  return (what, headers) => {
    const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim())
    if (/^websocket$/i.test(headers.upgrade ?? '') && offered.includes(webSocketProtocols[what] ?? '?')) total.inc({ subresource: what.toLowerCase() })
  }
}
