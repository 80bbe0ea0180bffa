/** Metrics of impersonation (L3). Upstream: apiserver/pkg/endpoints/filters/impersonation/metrics (v1.36). */
import type { Metrics } from '#base/metrics'

export type ImpersonationDecision = 'allowed' | 'denied'

export interface ImpersonationMetrics {
  /** @param constraint the verb that allowed it; undefined when none did */
  attempt(constraint: string | undefined, decision: ImpersonationDecision, durationMs: number): void
  authorization(verb: string, decision: ImpersonationDecision, durationMs: number): void
}

/** From 1 ms, doubling. */
const buckets = Array.from({ length: 15 }, (_, power) => 0.001 * 2 ** power)
const labels = ['mode', 'decision']
const modes = ['associated-node', 'arbitrary-node', 'serviceaccount', 'user-info']

export function impersonationMetrics(metrics: Metrics): ImpersonationMetrics {
  const pair = (name: string, counts: string, times: string) => {
    const count = metrics.counter({ name: `apiserver_impersonation_${name}_total`, help: counts, labels })
    const seconds = metrics.histogram({ name: `apiserver_impersonation_${name}_duration_seconds`, help: times, labels, buckets })
    return (mode: string, decision: ImpersonationDecision, durationMs: number) => {
      count.inc({ mode, decision })
      seconds.observe(durationMs / 1000, { mode, decision })
    }
  }
  const attempts = pair('attempts', 'Impersonation attempts, by mode and decision.', 'Time to decide impersonation attempts, in seconds.')
  const checks = pair('authorization_attempts', 'Authorization checks of impersonation, by decision.', 'How long one such question took, in seconds.')
  return {
    attempt: (constraint, decision, durationMs) => attempts(constraint === undefined ? '' : modeOf(constraint || 'impersonate'), decision, durationMs),
    authorization: (verb, decision, durationMs) => checks(modeOf(verb), decision, durationMs),
  }
}

function modeOf(verb: string): string {
  if (verb === 'impersonate') return 'legacy'
  return modes.find((mode) => verb === `impersonate:${mode}` || verb.startsWith(`impersonate-on:${mode}:`)) ?? 'unknown'
}
