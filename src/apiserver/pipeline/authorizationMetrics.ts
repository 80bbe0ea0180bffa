/**
 * Counts what was allowed and how long finding out took (L3). Upstream: apiserver/pkg/endpoints/filters/metrics.go (v1.36).
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
    help: "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
    labels: ['result'],
  })
  const seconds = metrics.histogram({
    name: 'authorization_duration_seconds',
    help: 'Authorization duration in seconds broken out by result.',
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
