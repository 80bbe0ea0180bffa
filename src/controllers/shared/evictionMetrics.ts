/** Metrics of pods that a taint evicts (L3). Upstream: pkg/controller/tainteviction/metrics, pkg/controller/devicetainteviction/metrics (v1.36). */
import type { Metrics } from '#base/metrics'

export interface EvictionMetrics {
  /** A pod was deleted so long after it should have been. */
  ended(lateMs: number): void
}

/** @param subsystem what the names begin with */
export function createEvictionMetrics(metrics: Metrics, subsystem: string, controller: string): EvictionMetrics {
  const deletions = metrics.counter({ name: `${subsystem}_pod_deletions_total`, help: `Pods that the ${controller} has deleted.` })
  const latency = metrics.histogram({
    name: `${subsystem}_pod_deletion_duration_seconds`,
    help: `How long after a taint took effect on a pod the ${controller} deleted it, in seconds.`,
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240],
  })
  return {
    ended(lateMs) {
      deletions.inc()
      latency.observe(Math.max(0, lateMs) / 1000)
    },
  }
}
