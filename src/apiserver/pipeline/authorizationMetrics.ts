/**
 * Counts authorization attempts and measures their duration (L3). Upstream: apiserver/pkg/endpoints/filters/metrics.go (v1.36).
 */
import type { Metrics } from '#base/metrics'
import type { AuthorizationDecision } from '../authz/authorizer.ts'

export interface AuthorizationMetrics {
  record(result: AuthorizationDecision, durationMs: number): void
}

/** From 1 ms, doubling. */
const buckets = Array.from({ length: 15 }, (_, power) => 0.001 * 2 ** power)

export function authorizationMetrics(metrics: Metrics): AuthorizationMetrics {
  const attempts = metrics.counter({
    name: 'authorization_attempts_total',
    help: 'How many requests were authorized, or not, by the answer.',
    labels: ['result'],
  })
  const seconds = metrics.histogram({
    name: 'authorization_duration_seconds',
    help: 'How long authorization took, by the answer, in seconds.',
    labels: ['result'],
    buckets,
  })
  const of = (result: string) => ({ count: attempts.series({ result }), seconds: seconds.series({ result }) })
  const allowed = of('allowed')
  const others = { deny: of('denied'), noOpinion: of('no-opinion') }
  const failed = of('error')
  return {
    record({ decision, error }, durationMs) {
      const series = decision === 'allow' ? allowed : error === undefined ? others[decision] : failed
      series.count.inc()
      series.seconds.observe(durationMs / 1000)
    },
  }
}
