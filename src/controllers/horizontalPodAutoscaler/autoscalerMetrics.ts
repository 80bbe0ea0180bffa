/** Metrics of the autoscaler (L3). Upstream: pkg/controller/podautoscaler/monitor (v1.36). */
import { refOfKey } from '#api/machinery/meta'
import { exponentialBuckets, type Metrics } from '#base/metrics'

export type Action = 'scale_up' | 'scale_down' | 'none'
export type Fault = 'spec' | 'internal' | 'none'

export interface AutoscalerMetrics {
  reconciled(action: Action, error: Fault, seconds: number): void
  computed(action: Action, error: Fault, metricType: string, seconds: number): void
  /** How many autoscalers there are. */
  count(autoscalers: number): void
  desired(key: string, replicas: number): void
  gone(key: string): void
}

export function createAutoscalerMetrics(metrics: Metrics): AutoscalerMetrics {
  const named = (name: string, help: string, labels: readonly string[] = []) => ({ name: `horizontal_pod_autoscaler_controller_${name}`, help, labels })
  const buckets = exponentialBuckets(0.001, 2, 15)
  const reconciliations = metrics.counter(named('reconciliations_total', 'Syncs of autoscalers, by what they did and by what failed.', ['action', 'error']))
  const reconciliationTimes = metrics.histogram({
    ...named('reconciliation_duration_seconds', 'How long one sync of an autoscaler took, in seconds.', ['action', 'error']),
    buckets,
  })
  const labels = ['action', 'error', 'metric_type']
  const computations = metrics.counter(named('metric_computation_total', 'Evaluations of single metrics, by what they asked for and by what failed.', labels))
  const computationTimes = metrics.histogram({
    ...named('metric_computation_duration_seconds', 'How long the evaluation of one metric took, in seconds.', labels),
    buckets,
  })
  const autoscalers = metrics.gauge(named('num_horizontal_pod_autoscalers', 'How many autoscalers there are.'))
  const desired = metrics.gauge(named('desired_replicas', 'The replicas that an autoscaler set last.', ['namespace', 'hpa_name']))
  const labelsOf = (key: string) => {
    const { namespace = '', name } = refOfKey(key)
    return { namespace, hpa_name: name }
  }
  return {
    reconciled(action, error, seconds) {
      reconciliations.inc({ action, error })
      reconciliationTimes.observe(seconds, { action, error })
    },
    computed(action, error, metricType, seconds) {
      computations.inc({ action, error, metric_type: metricType })
      computationTimes.observe(seconds, { action, error, metric_type: metricType })
    },
    count: (count) => autoscalers.set(count),
    desired: (key, replicas) => desired.set(replicas, labelsOf(key)),
    gone: (key) => desired.remove(labelsOf(key)),
  }
}
