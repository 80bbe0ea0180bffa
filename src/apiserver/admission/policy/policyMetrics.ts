/** The metrics of admission policies (L3). Upstream: apiserver/pkg/admission/plugin/policy/{validating,mutating}/metrics (v1.36). */
import type { Metrics } from '#base/metrics'

export interface PolicyMetrics {
  validated(policy: string, binding: string, errorType: string, action: 'allow' | 'deny' | 'audit' | 'warn', seconds: number): void
  mutated(policy: string, binding: string, errorType: string, seconds: number): void
}

const buckets = [0.0000005, 0.001, 0.01, 0.1, 1]

export function createPolicyMetrics(metrics: Metrics): PolicyMetrics {
  const labels = ['policy', 'policy_binding', 'error_type']
  const validating = {
    checks: metrics.counter({
      name: 'apiserver_validating_admission_policy_check_total',
      help: 'How often a policy has judged, by what came of it.',
      labels: [...labels, 'enforcement_action'],
    }),
    seconds: metrics.histogram({
      name: 'apiserver_validating_admission_policy_check_duration_seconds',
      help: 'How long a policy took to judge, in seconds.',
      labels: [...labels, 'enforcement_action'],
      buckets,
    }),
  }
  const mutating = {
    checks: metrics.counter({
      name: 'apiserver_mutating_admission_policy_check_total',
      help: 'How often a policy was to change an object.',
      labels,
    }),
    seconds: metrics.histogram({
      name: 'apiserver_mutating_admission_policy_check_duration_seconds',
      help: 'How long a policy took to change an object, in seconds.',
      labels,
      buckets,
    }),
  }
  return {
    validated(policy, binding, errorType, action, seconds) {
      const series = { policy, policy_binding: binding, error_type: errorType, enforcement_action: action }
      validating.checks.inc(series)
      validating.seconds.observe(seconds, series)
    },
    mutated(policy, binding, errorType, seconds) {
      const series = { policy, policy_binding: binding, error_type: errorType }
      mutating.checks.inc(series)
      mutating.seconds.observe(seconds, series)
    },
  }
}

/** The class of a failure, by its text as upstream does it. */
export function errorTypeOf(message: string | undefined): string {
  if (message === undefined) return 'no_error'
  if (message.startsWith('compilation')) return 'compile_error'
  return message.startsWith('validation failed due to running out of cost budget') ? 'out_of_budget' : 'invalid_error'
}
