/**
 * Counts and times requests (L3) under upstream's metric names.
 * Upstream: apiserver/pkg/endpoints/filters/webhook_duration.go, pkg/endpoints/metrics.
 */
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import { statusOf } from '../answer.ts'
import type { WatchSession } from '../registry/watchSession.ts'
import type { ServerRequest } from '../request.ts'
import { isLongRunning, type Stage } from './stage.ts'

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
  const inFlight = deps.metrics.gauge({ name: 'apiserver_current_inflight_requests', help: 'Requests being worked on.', labels: ['request_kind'] })
  return {
    name: 'latency',
    async handle(request, next) {
      const startedMs = deps.clock.monotonicMs()
      const kind = request.method === 'GET' || request.method === 'HEAD' ? 'readOnly' : 'mutating'
      inFlight.inc({ request_kind: kind })
      let code = 500
      try {
        const answer = await next(request)
        code = statusOf(answer)
        if (answer.type === 'watch') followWatch(request, answer.session, longRunning)
        return answer
      } catch (error) {
        if (error instanceof StatusError) code = error.code
        throw error
      } finally {
        inFlight.dec({ request_kind: kind })
        const seconds = (deps.clock.monotonicMs() - startedMs) / 1000
        const values = labelValues(request)
        total.inc({ ...values, code })
        if (!isLongRunning(request)) duration.observe(seconds, values)
      }
    },
  }
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

const canonical: Readonly<Record<string, string>> = { create: 'POST', update: 'PUT', deletecollection: 'DELETECOLLECTION' }

/** The verb as metrics and logs name it. */
export function normalizedVerb({ info, method }: ServerRequest): string {
  if (!info?.isResourceRequest) return method
  return canonical[info.verb] ?? info.verb.toUpperCase()
}
