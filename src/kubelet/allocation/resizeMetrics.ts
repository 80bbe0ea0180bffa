/**
 * What the kubelet counts and times about in-place resizes (L3), under upstream's names and with its buckets.
 * Upstream: kubelet/metrics/metrics.go, kubelet.go recordContainerResizeOperations (v1.36).
 */
import type { Counter, Histogram, Metrics } from '#base/metrics'
import type { FrozenPod } from '../core/containers.ts'
import { milliUnits, quantity } from '../core/quantities.ts'

export interface ResizeMetrics {
  readonly infeasible: Counter
  readonly deferredAccepted: Counter
  /** How many wait, and why, and how many are being carried out. */
  resizeCounts(waiting: readonly (string | undefined)[], inProgress: number): void
}

/** Of whether pods get what they ask for. */
export function createResizeMetrics(metrics: Metrics): ResizeMetrics {
  const counter = (name: string, help: string, label: string) => metrics.counter({ name: `kubelet_${name}`, help, labels: [label] })
  const pending = metrics.gauge({ name: 'kubelet_pod_pending_resizes', help: 'Pods whose resize waits, by why.', labels: ['reason'] })
  const underWay = metrics.gauge({ name: 'kubelet_pod_in_progress_resizes', help: 'Pods whose resize is under way.' })
  return {
    infeasible: counter('pod_infeasible_resizes_total', 'Resizes that this node can never do, by why.', 'reason_detail'),
    deferredAccepted: counter('pod_deferred_accepted_resizes_total', 'Resizes that had to wait and were accepted then, by what made room.', 'retry_trigger'),
    resizeCounts: (waiting, inProgress) => {
      for (const name of ['Deferred', 'Infeasible']) pending.set(waiting.filter((reason) => reason === name).length, { reason: name.toLowerCase() })
      underWay.set(inProgress)
    },
  }
}

const durationBuckets = [10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000]

/** Of carrying one out, in milliseconds. */
export function resizeDuration(metrics: Metrics): Histogram {
  const help = 'How long a resize took from its acceptance, in milliseconds.'
  return metrics.histogram({ name: 'kubelet_pod_resize_duration_milliseconds', help, labels: ['success'], buckets: durationBuckets })
}

/** Labels of kubelet_container_requested_resizes_total. */
export type RequestedResize = Readonly<Record<'resource' | 'requirement' | 'operation', string>>

/** What a pod's containers ask for now that they did not before: an entry for each change. */
export function requestedResizes(before: FrozenPod, after: FrozenPod): RequestedResize[] {
  const containersOf = ({ spec }: FrozenPod) => [...(spec.initContainers ?? []), ...spec.containers]
  const had = new Map(containersOf(before).map(({ name, resources }) => [name, resources]))
  return containersOf(after).flatMap(({ name, resources }) =>
    (['limits', 'requests'] as const).flatMap((requirement) =>
      (['cpu', 'memory'] as const).flatMap((resource) => {
        const operation = operationOf(resource, had.get(name)?.[requirement]?.[resource], resources?.[requirement]?.[resource])
        return operation ? [{ resource, requirement, operation }] : []
      }),
    ),
  )
}

function operationOf(resource: 'cpu' | 'memory', before: string | undefined, after: string | undefined): string | undefined {
  if (before === after) return undefined
  if (before === undefined) return 'add'
  if (after === undefined) return 'remove'
  const amount = resource === 'cpu' ? milliUnits : quantity
  const difference = amount(after) - amount(before)
  return difference === 0 ? undefined : difference > 0 ? 'increase' : 'decrease'
}
