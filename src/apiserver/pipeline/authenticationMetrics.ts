/**
 * Counts authentication attempts and measures their duration (L3). The label of users has a few well-known names; all others are grouped by kind.
 * Upstream: apiserver/pkg/endpoints/filters/metrics.go.
 */
import type { CounterSeries, Metrics } from '#base/metrics'

export type AttemptResult = 'success' | 'failure' | 'error'

export interface AuthenticationMetrics {
  /** @param userName the authenticated user, if there is one */
  record(result: AttemptResult, durationMs: number, userName?: string): void
}

/** From 1 ms, doubling. */
const buckets = Array.from({ length: 15 }, (_, power) => 0.001 * 2 ** power)
const wellKnown: ReadonlySet<string> = new Set(['admin', 'client', 'kube_proxy', 'kubelet', 'system:serviceaccount:kube-system:default'])

export function authenticationMetrics(metrics: Metrics): AuthenticationMetrics {
  const attempts = metrics.counter({ name: 'authentication_attempts', help: 'How many requests were authenticated, or not.', labels: ['result'] })
  const seconds = metrics.histogram({
    name: 'authentication_duration_seconds',
    help: 'How long authentication took, by how it went, in seconds.',
    labels: ['result'],
    buckets,
  })
  const users = metrics.counter({
    name: 'authenticated_user_requests',
    help: 'How many requests users have made.',
    labels: ['username'],
  })
  const of = (result: AttemptResult) => ({ count: attempts.series({ result }), seconds: seconds.series({ result }) })
  const results = { success: of('success'), failure: of('failure'), error: of('error') }
  const byUser = new Map<string, CounterSeries>()
  const countUser = (name: string) => {
    const username = wellKnown.has(name) ? name : name.includes('@') ? 'email_id' : 'other'
    let series = byUser.get(username)
    if (!series) {
      series = users.series({ username })
      byUser.set(username, series)
    }
    series.inc()
  }
  return {
    record(result, durationMs, userName) {
      results[result].count.inc()
      results[result].seconds.observe(durationMs / 1000)
      if (userName !== undefined) countUser(userName)
    },
  }
}
