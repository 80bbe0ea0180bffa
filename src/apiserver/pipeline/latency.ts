/**
 * Counts and times requests (L3) under upstream's metric names.
 * Upstream: apiserver/pkg/endpoints/filters/webhook_duration.go, pkg/endpoints/metrics.
 */
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { CounterSeries, HistogramSeries, Metrics } from '#base/metrics'
import type { ServerRequest } from '../core/request.ts'
import { codeOf, finished, isLongRunning, type Stage } from '../core/stage.ts'
import type { WatchSession } from '../core/watch/watchSession.ts'

const durationBuckets = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]

export function latencyStage(deps: { clock: Clock; metrics: Metrics }): Stage {
  const labels = ['verb', 'dry_run', 'group', 'version', 'resource', 'subresource', 'scope', 'component'] as const
  const total = deps.metrics.counter({
    name: 'apiserver_request_total',
    help: 'Requests by verb, resource and response code.',
    labels: [...labels, 'code'],
  })
  const duration = deps.metrics.histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'How long requests took, in seconds.',
    labels,
    buckets: durationBuckets,
  })
  const longRunning = deps.metrics.gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Open long-running requests.',
    labels: labels.filter((label) => label !== 'dry_run'),
  })
  const deprecated = deps.metrics.gauge({
    name: 'apiserver_requested_deprecated_apis',
    help: 'Deprecated APIs that were requested, by resource and the release that removes them.',
    labels: ['group', 'version', 'resource', 'subresource', 'removed_release'],
  })
  const inFlight = deps.metrics.gauge({ name: 'apiserver_current_inflight_requests', help: 'Requests being worked on.', labels: ['request_kind'] })
  const known = new LruCache<string, KnownSeries>(mostKnownSeries)
  const seriesOf = (request: ServerRequest, code: number): KnownSeries => {
    const key = seriesKey(request, code)
    let series = known.get(key)
    if (!series) {
      const values = labelValues(request)
      series = { total: total.series({ ...values, code }), duration: isLongRunning(request) ? undefined : duration.series(values) }
      known.set(key, series)
    }
    return series
  }
  return {
    name: 'latency',
    handle(request, next) {
      const startedMs = deps.clock.monotonicMs()
      const kind = request.method === 'GET' || request.method === 'HEAD' ? readOnly : mutating
      inFlight.inc(kind)
      return finished(next, request, (answer, error) => {
        if (answer?.type === 'watch') followWatch(request, answer.session, longRunning)
        inFlight.dec(kind)
        const series = seriesOf(request, codeOf(answer, error))
        series.total.inc()
        if (request.deprecated) deprecated.set(1, deprecatedLabels(request))
        series.duration?.observe((deps.clock.monotonicMs() - startedMs) / 1000)
      })
    },
  }
}

function deprecatedLabels(request: ServerRequest) {
  const { group, version, resource, subresource } = labelValues(request)
  // No release that removes one of the served resources is known yet.
  return { group, version, resource, subresource, removed_release: '' }
}

const readOnly = { request_kind: 'readOnly' }
const mutating = { request_kind: 'mutating' }

interface KnownSeries {
  readonly total: CounterSeries
  /** Undefined for long-running requests. */
  readonly duration: HistogramSeries | undefined
}

const mostKnownSeries = 4096

/** The cache key of a series: all values from which labels are derived. */
function seriesKey({ info, method, query }: ServerRequest, code: number): string {
  if (!info?.isResourceRequest) return `${code} ${method} ${info?.path}`
  const { verb, apiGroup, apiVersion, resource, subresource, name, namespace } = info
  const scope = name ? 2 : namespace ? 1 : 0
  return `${code} ${verb} ${apiGroup} ${apiVersion} ${resource} ${subresource} ${scope} ${query.size > 0 && query.has('dryRun')}`
}

function followWatch(
  request: ServerRequest,
  session: WatchSession,
  gauge: { inc(labels: Record<string, string>): void; dec(labels: Record<string, string>): void },
): void {
  const { dry_run: _, ...labels } = labelValues(request)
  gauge.inc(labels)
  session.whenClosed(() => gauge.dec(labels))
}

function labelValues(request: ServerRequest) {
  const { info } = request
  if (!info?.isResourceRequest) {
    return { verb: request.method, dry_run: '', group: '', version: '', resource: '', subresource: info?.path ?? '', scope: '', component: 'apiserver' }
  }
  const scope = info.name ? 'resource' : info.namespace ? 'namespace' : 'cluster'
  return {
    verb: normalizedVerb(request),
    dry_run: request.query.has('dryRun') ? 'All' : '',
    group: info.apiGroup,
    version: info.apiVersion,
    resource: info.resource,
    subresource: info.subresource,
    scope,
    component: 'apiserver',
  }
}

const canonical: Readonly<Record<string, string>> = bareMap({ create: 'POST', update: 'PUT', deletecollection: 'DELETECOLLECTION' })

/** The verb as metrics and logs name it. */
export function normalizedVerb({ info, method }: ServerRequest): string {
  if (!info?.isResourceRequest) return method
  return canonical[info.verb] ?? info.verb.toUpperCase()
}
