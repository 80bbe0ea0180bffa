/**
 * Counts and times requests (L3) under upstream's metric names.
 * Upstream: apiserver/pkg/endpoints/filters/webhook_duration.go, pkg/endpoints/metrics.
 */
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import { type CounterSeries, exponentialBuckets, type HistogramSeries, type Labels, type Metrics } from '#base/metrics'
import type { RequestInfo, ServerRequest } from '../core/request.ts'
import { codeOf, finished, isLongRunning, type Stage } from '../core/stage.ts'
import type { WatchSession } from '../core/watch/watchSession.ts'

const sizeBuckets = exponentialBuckets(1000, 10, 7)
const watchListBuckets = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60]
const sliBuckets = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]
const durationBuckets = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]

export interface LatencyDeps {
  readonly clock: Clock
  readonly metrics: Metrics
  /** Whether a resource is served; of others, no names become labels, since clients choose them. Absent: every resource is. */
  readonly isServed?: ((info: RequestInfo) => boolean) | undefined
  /** Called with every request that is not served. */
  readonly onRefusal?: ((request: ServerRequest, code: number, error: unknown, durationMs: number) => void) | undefined
}

const labels = ['verb', 'dry_run', 'group', 'version', 'resource', 'subresource', 'scope', 'component'] as const
const labelsWithoutDryRun = labels.filter((label) => label !== 'dry_run')

function requestMetrics(metrics: Metrics) {
  return {
    total: metrics.counter({ name: 'apiserver_request_total', help: 'Requests by verb, resource and response code.', labels: [...labels, 'code'] }),
    duration: metrics.histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'How long requests took, in seconds.',
      labels,
      buckets: durationBuckets,
    }),
    sli: metrics.histogram({
      name: 'apiserver_request_sli_duration_seconds',
      help: 'How long requests took without webhooks and queues of priority and fairness, in seconds.',
      labels: labelsWithoutDryRun,
      buckets: sliBuckets,
    }),
    terminations: metrics.counter({
      name: 'apiserver_request_terminations_total',
      help: 'Requests that the server ended to protect itself: too many at once, or out of time.',
      labels: [...labelsWithoutDryRun, 'code'],
    }),
    longRunning: metrics.gauge({ name: 'apiserver_longrunning_requests', help: 'Open long-running requests.', labels: labelsWithoutDryRun }),
    deprecated: metrics.gauge({
      name: 'apiserver_requested_deprecated_apis',
      help: 'Deprecated APIs that were requested, by resource and the release that removes them.',
      labels: ['group', 'version', 'resource', 'subresource', 'removed_release'],
    }),
    sizes: metrics.histogram({
      name: 'apiserver_response_sizes',
      help: 'Sizes of the answers to reads, in bytes.',
      labels: labelsWithoutDryRun,
      buckets: sizeBuckets,
    }),
    watchLists: metrics.histogram({
      name: 'apiserver_watch_list_duration_seconds',
      help: 'How long the initial events of streaming lists took, in seconds.',
      labels: ['group', 'version', 'resource', 'scope'],
      buckets: watchListBuckets,
    }),
    inFlight: metrics.gauge({ name: 'apiserver_current_inflight_requests', help: 'Requests being worked on.', labels: ['request_kind'] }),
  }
}

export function latencyStage(deps: LatencyDeps): Stage {
  const { total, duration, sli, terminations, longRunning, deprecated, sizes, watchLists, inFlight } = requestMetrics(deps.metrics)
  const known = new LruCache<string, KnownSeries>(mostKnownSeries)
  const seriesOf = (request: ServerRequest, code: number): KnownSeries => {
    const isKnown = code < 400 || namesServedPath(request, deps.isServed)
    const key = isKnown ? seriesKey(request, code) : `${code} ${request.method}`
    let series = known.get(key)
    if (!series) {
      const values = isKnown ? labelValues(request) : { ...labelsOfUnknown, verb: cleanMethod(request.method) }
      const others = withoutDryRun(values)
      const isShort = !isLongRunning(request)
      series = {
        labels: others,
        total: total.series({ ...values, code }),
        duration: isShort ? duration.series(values) : undefined,
        sli: isShort ? sli.series(others) : undefined,
        size: request.method === 'GET' && isShort ? sizes.series(others) : undefined,
      }
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
        const code = codeOf(answer, error)
        if (code >= 400) deps.onRefusal?.(request, code, error, deps.clock.monotonicMs() - startedMs)
        const series = seriesOf(request, code)
        request.meter = {
          body: (bytes) => series.size?.observe(bytes),
          initialEvents: () => watchLists.observe((deps.clock.monotonicMs() - startedMs) / 1000, watchListLabels(request)),
        }
        series.total.inc()
        if (request.deprecated) deprecated.set(1, deprecatedLabels(request))
        if (request.terminated) terminations.inc({ ...series.labels, code })
        const tookMs = deps.clock.monotonicMs() - startedMs
        series.duration?.observe(tookMs / 1000, 1, request.span && { ...request.span, atMs: deps.clock.now() })
        series.sli?.observe(Math.max(0, tookMs - (request.excludedMs ?? 0)) / 1000)
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
  readonly labels: Labels
  readonly total: CounterSeries
  /** Undefined for long-running requests, as the next one. */
  readonly duration: HistogramSeries | undefined
  readonly sli: HistogramSeries | undefined
  /** Undefined for all but reads. */
  readonly size: HistogramSeries | undefined
}

const mostKnownSeries = 4096

/** The cache key of a series: all values from which labels are derived. */
function seriesKey(request: ServerRequest, code: number): string {
  const { info, method, query } = request
  if (!info?.isResourceRequest) return `${code} ${method} ${pathLabel(info?.path)}`
  const { verb, apiGroup, apiVersion, resource, subresource, name, namespace } = info
  const scope = name ? 2 : namespace ? 1 : 0
  return `${code} ${verb} ${apiGroup} ${apiVersion} ${resource} ${subresource} ${scope} ${query.size > 0 && query.has('dryRun')} ${method === 'PATCH' && isApply(request)}`
}

function followWatch(
  request: ServerRequest,
  session: WatchSession,
  gauge: { inc(labels: Record<string, string>): void; dec(labels: Record<string, string>): void },
): void {
  const values = withoutDryRun(labelValues(request))
  gauge.inc(values)
  session.whenClosed(() => gauge.dec(values))
}

const labelsOfUnknown = { dry_run: '', group: '', version: '', resource: '', subresource: '', scope: '', component: 'apiserver' }

/** A refused request counts under its names only when they are the server's own. */
function namesServedPath({ info }: ServerRequest, isServed: LatencyDeps['isServed']): boolean {
  if (!info) return false
  if (info.isResourceRequest) return isServed?.(info) ?? true
  return pathLabel(info.path) !== ''
}

/** Paths of the server itself. Clients choose what stands below them, so that is no label. */
const roots: ReadonlySet<string> = new Set([
  '/.well-known',
  '/api',
  '/apis',
  '/debug',
  '/healthz',
  '/livez',
  '/logs',
  '/metrics',
  '/openapi',
  '/readyz',
  '/skiff',
  '/version',
])

/** The first segment of a path of the server itself; empty for others. */
function pathLabel(path = ''): string {
  const end = path.indexOf('/', 1)
  const root = end < 0 ? path : path.slice(0, end)
  return roots.has(root) ? root : ''
}

/** Upstream's names of methods; HTTP/2 lets a client send any other. */
const methods: ReadonlySet<string> = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'])

function cleanMethod(method: string): string {
  return methods.has(method) ? method : 'other'
}

function withoutDryRun({ dry_run: _, ...others }: ReturnType<typeof labelValues>) {
  return others
}

function scopeOf({ name, verb, namespace }: RequestInfo): string {
  return name !== '' || verb === 'create' ? 'resource' : namespace ? 'namespace' : 'cluster'
}

function watchListLabels({ info }: ServerRequest) {
  return info ? { group: info.apiGroup, version: info.apiVersion, resource: info.resource, scope: scopeOf(info) } : {}
}

function labelValues(request: ServerRequest) {
  const { info } = request
  if (!info?.isResourceRequest) return { ...labelsOfUnknown, verb: cleanMethod(request.method), subresource: pathLabel(info?.path) }
  const scope = scopeOf(info)
  return {
    verb: reportedVerb(request),
    dry_run: request.query.has('dryRun') ? 'All' : '',
    group: info.apiGroup,
    version: info.apiVersion,
    resource: info.resource,
    subresource: info.subresource,
    scope,
    component: 'apiserver',
  }
}

/** Upstream: cleanVerb of endpoints/metrics. */
function reportedVerb(request: ServerRequest): string {
  if (request.info && connectSubresources.has(request.info.subresource)) return 'CONNECT'
  if (isApply(request)) return 'APPLY'
  return normalizedVerb(request)
}

const connectSubresources: ReadonlySet<string> = new Set(['log', 'exec', 'portforward', 'attach', 'proxy'])

function isApply({ method, headers }: ServerRequest): boolean {
  const type = headers['content-type']
  return method === 'PATCH' && typeof type === 'string' && type.startsWith('application/apply-patch+yaml')
}

const canonical: Readonly<Record<string, string>> = bareMap({ create: 'POST', update: 'PUT', deletecollection: 'DELETECOLLECTION' })

/** The verb as metrics and logs name it. */
export function normalizedVerb({ info, method }: ServerRequest): string {
  if (!info?.isResourceRequest) return method
  return canonical[info.verb] ?? info.verb.toUpperCase()
}
