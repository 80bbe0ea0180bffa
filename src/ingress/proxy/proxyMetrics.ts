/** Metrics of the proxy (L3). Labels are status codes only: names of Ingresses come from tenants and would grow without end. */
import type { CounterSeries, GaugeSeries, HistogramSeries, Metrics } from '#base/metrics'

export interface ProxyMetrics {
  readonly duration: HistogramSeries
  readonly inFlight: GaugeSeries
  readonly tunnels: GaugeSeries
  readonly retries: CounterSeries
  requests(status: number): CounterSeries
}

export function createProxyMetrics(metrics: Metrics): ProxyMetrics {
  const requests = metrics.counter({ name: 'skiff_ingress_requests_total', help: 'Requests that were answered, by status code.', labels: ['code'] })
  const byStatus = new Map<number, CounterSeries>()
  return {
    duration: metrics
      .histogram({ name: 'skiff_ingress_request_duration_seconds', help: 'Time from the headers of a request to the end of its answer.' })
      .series({}),
    inFlight: metrics.gauge({ name: 'skiff_ingress_requests_in_flight', help: 'Requests that are not answered yet.' }).series({}),
    tunnels: metrics
      .gauge({ name: 'skiff_ingress_tunnels', help: 'Upgraded connections, and TLS connections that are routed by their server names.' })
      .series({}),
    retries: metrics.counter({ name: 'skiff_ingress_retries_total', help: 'Requests that were sent to another endpoint.' }).series({}),
    requests: (status) => {
      const there = byStatus.get(status)
      if (there) return there
      const series = requests.series({ code: String(status) })
      byStatus.set(status, series)
      return series
    },
  }
}
