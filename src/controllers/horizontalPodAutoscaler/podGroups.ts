/**
 * Groups pods for one metric (L3, pure): ready, not ready, without a measurement, and those that end, which are left out.
 * Upstream: groupPods of pkg/controller/podautoscaler/replica_calculator.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'

export interface PodMetric {
  /** In thousandths. */
  readonly value: number
  readonly atMs: number
  readonly windowMs: number
}

/** By name of the pod. */
export type PodMetrics = ReadonlyMap<string, PodMetric>

export interface ReadinessPeriods {
  /** During this time after its start, a pod's CPU counts only if the pod was ready during the whole measurement. */
  readonly cpuInitializationMs: number
  /** A pod that became unready so soon after its start has never been ready. */
  readonly initialReadinessDelayMs: number
}

export interface PodGroups {
  /** How many pods are ready and measured. */
  readonly ready: number
  readonly unready: ReadonlySet<string>
  readonly missing: ReadonlySet<string>
  /** Without those of unready pods and of pods that end. */
  readonly measured: PodMetrics
}

export interface GroupingQuestion {
  readonly pods: readonly Frozen<Pod>[]
  readonly metrics: PodMetrics
  readonly resource?: string | undefined
  readonly periods: ReadinessPeriods
  readonly nowMs: number
}

export function groupPods({ pods, metrics, resource, periods, nowMs }: GroupingQuestion): PodGroups {
  const unready = new Set<string>()
  const missing = new Set<string>()
  const measured = new Map(metrics)
  let ready = 0
  for (const pod of pods) {
    const { name = '', deletionTimestamp } = pod.metadata
    const metric = metrics.get(name)
    if (deletionTimestamp !== undefined || pod.status?.phase === 'Failed') measured.delete(name)
    else if (pod.status?.phase === 'Pending') unready.add(name)
    else if (!metric) missing.add(name)
    else if (resource === 'cpu' && !isCpuMeaningful(pod, metric, periods, nowMs)) unready.add(name)
    else ready++
  }
  for (const name of unready) measured.delete(name)
  return { ready, unready, missing, measured }
}

/** A starting pod uses more CPU than it will later. */
function isCpuMeaningful(pod: Frozen<Pod>, metric: PodMetric, { cpuInitializationMs, initialReadinessDelayMs }: ReadinessPeriods, nowMs: number): boolean {
  const condition = podCondition(pod, 'Ready')
  if (!condition || pod.status?.startTime === undefined) return false
  const startMs = Date.parse(pod.status.startTime)
  const changedMs = condition.lastTransitionTime ? Date.parse(condition.lastTransitionTime) : 0
  const isUnready = condition.status === 'False'
  if (startMs + cpuInitializationMs > nowMs) return !isUnready && metric.atMs >= changedMs + metric.windowMs
  return !(isUnready && startMs + initialReadinessDelayMs > changedMs)
}
