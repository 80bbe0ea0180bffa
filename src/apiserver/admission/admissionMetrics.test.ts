/** ADM-02: the series that dashboards of upstream's webhook metrics read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Labels, Metrics } from '#base/metrics'
import { createAdmissionMetrics } from './admissionMetrics.ts'
import { createPolicyMetrics, errorTypeOf } from './policy/policyMetrics.ts'

/** Writes down what is recorded, and holds it to the labels that were declared. */
function recorder(): { readonly metrics: Metrics; readonly lines: string[] } {
  const lines: string[] = []
  const record = (name: string, labels: readonly string[] | undefined, given: Labels = {}, by = '') => {
    assert.deepEqual(Object.keys(given).sort(), [...(labels ?? [])].sort())
    lines.push(`${name}{${Object.entries(given).map(([label, value]) => `${label}=${value}`)}}${by}`)
  }
  const counter: Metrics['counter'] = ({ name, labels }) => ({ inc: (given, by = 1) => record(name, labels, given, ` +${by}`), series: () => assert.fail() })
  const metrics: Metrics = {
    counter,
    gauge: () => assert.fail(),
    histogram: ({ name, labels }) => ({ observe: (value, given) => record(name, labels, given, ` ${value}`), series: () => assert.fail() }),
    summary: () => assert.fail(),
  }
  return { metrics, lines }
}

test('a call, a rejection, a failure that is let pass', () => {
  const { metrics, lines } = recorder()
  const { called, rejected, failedOpen } = createAdmissionMetrics(metrics)
  const call = { name: 'w', step: 'admit', operation: 'CREATE', seconds: 0.5, rejected: true, code: 1000 } as const
  called(call)
  rejected(call, 'no_error')
  failedOpen('w', 'validating')
  assert.deepEqual(lines, [
    'apiserver_admission_webhook_request_total{name=w,type=admit,operation=CREATE,code=600,rejected=true} +1',
    'apiserver_admission_webhook_admission_duration_seconds{name=w,type=admit,operation=CREATE,rejected=true} 0.5',
    'apiserver_admission_webhook_rejection_count{name=w,type=admit,operation=CREATE,error_type=no_error,rejection_code=600} +1',
    'apiserver_admission_webhook_fail_open_count{name=w,type=validating} +1',
  ])
})

test('match conditions', () => {
  const { metrics, lines } = recorder()
  const { conditionsEvaluated, conditionsExcluded } = createAdmissionMetrics(metrics)
  const owner = { name: 'p', kind: 'policy', type: 'validate', operation: 'UPDATE' } as const
  conditionsEvaluated(owner, 0.25, 2)
  conditionsExcluded(owner)
  assert.deepEqual(lines, [
    'apiserver_admission_match_condition_evaluation_seconds{name=p,kind=policy,type=validate,operation=UPDATE} 0.25',
    'apiserver_admission_match_condition_evaluation_errors_total{name=p,kind=policy,type=validate,operation=UPDATE} +2',
    'apiserver_admission_match_condition_exclusions_total{name=p,kind=policy,type=validate,operation=UPDATE} +1',
  ])
})

test('policies, and the classes of their failures', () => {
  const { metrics, lines } = recorder()
  const { validated, mutated } = createPolicyMetrics(metrics)
  validated('p', 'b', 'no_error', 'deny', 1)
  mutated('p', 'b', 'compile_error', 2)
  assert.deepEqual(lines, [
    'apiserver_validating_admission_policy_check_total{policy=p,policy_binding=b,error_type=no_error,enforcement_action=deny} +1',
    'apiserver_validating_admission_policy_check_duration_seconds{policy=p,policy_binding=b,error_type=no_error,enforcement_action=deny} 1',
    'apiserver_mutating_admission_policy_check_total{policy=p,policy_binding=b,error_type=compile_error} +1',
    'apiserver_mutating_admission_policy_check_duration_seconds{policy=p,policy_binding=b,error_type=compile_error} 2',
  ])
  const classes = [undefined, 'compilation error: x', 'validation failed due to running out of cost budget, no further', "expression 'x' resulted in error"]
  assert.deepEqual(classes.map(errorTypeOf), ['no_error', 'compile_error', 'out_of_budget', 'invalid_error'])
})
