/**
 * What the kubelet counts and times about pods (L3), under upstream's names and with its buckets. How long a start took is measured here too:
 * from creation until the API has the status that everything runs, once with and once without pulling images and running init containers.
 * Upstream: kubelet/metrics/metrics.go, kubelet/util/pod_startup_latency_tracker.go (v1.36).
 */
import type { ContainerStatus, PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { greatest, least } from '#base/extremes'
import type { Counter, Gauge, Histogram, Metrics } from '#base/metrics'
import { parseTime } from '#base/time'
import { type ContainerKind, type FrozenPod, isTerminalPhase } from '../core/containers.ts'

export interface PodMetrics {
  readonly startedPods: Counter
  readonly startedPodsErrors: Counter
  readonly startedContainers: Counter
  readonly startedContainersErrors: Counter
  readonly startedUserNamespacedPods: Counter
  readonly startedUserNamespacedPodsErrors: Counter
  readonly preemptions: Counter
  /** A pod was refused, and why. */
  rejected(reason: string): void
  /** Counts containers that have ended since. */
  ended(before: Frozen<PodStatus>, after: Frozen<PodStatus>): void
  readonly restartedPods: Counter
  readonly requestedResizes: Counter
  readonly podStartDuration: Histogram
  readonly podWorkerStartDuration: Histogram
  readonly podWorkerDuration: Histogram
  readonly containersPerPod: Histogram
  readonly starts: StartTracker
}

/** How upstream calls the kinds of containers in labels. */
export const containerTypes: Readonly<Record<ContainerKind, string>> = { init: 'init_container', regular: 'container', ephemeral: 'ephemeral_container' }

const startBuckets = [0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600]
const untilReported = 'measured from pod creation timestamp to when all its containers are reported as started and observed via watch'

export function createPodMetrics(metrics: Metrics, clock: Clock): PodMetrics {
  const counter = (name: string, help: string, labels?: readonly string[]) => metrics.counter({ name: `kubelet_${name}`, help, ...(labels ? { labels } : {}) })
  const histogram = (name: string, help: string, more: { labels?: readonly string[]; buckets?: readonly number[] } = {}) =>
    metrics.histogram({ name: `kubelet_${name}`, help, ...more })
  return {
    startedPods: counter('started_pods_total', 'How many pods were started.'),
    startedPodsErrors: counter('started_pods_errors_total', 'How many pods could not be started.'),
    startedContainers: counter('started_containers_total', 'How many containers were started, by type.', ['container_type']),
    startedContainersErrors: counter('started_containers_errors_total', 'How many containers could not be started, by type and why.', [
      'container_type',
      'code',
    ]),
    startedUserNamespacedPods: counter('started_user_namespaced_pods_total', 'Pods with users of their own that were started.'),
    startedUserNamespacedPodsErrors: counter('started_user_namespaced_pods_errors_total', 'Pods with users of their own that could not be started.'),
    rejected: countRejections(metrics),
    ended: countEnds(metrics),
    preemptions: counter('preemptions', 'How many pods had to make room for others, by what was short.', ['preemption_signal']),
    restartedPods: counter(
      'restarted_pods_total',
      'How many pods were deleted and made again under the same uid while the kubelet looked: static pods whose file was changed.',
      ['static'],
    ),
    requestedResizes: counter(
      'container_requested_resizes_total',
      'Changes of resources that were asked of running containers: each resource by itself, its requests and limits by themselves.',
      ['resource', 'requirement', 'operation'],
    ),
    podStartDuration: histogram('pod_start_duration_seconds', 'How long it took from the first notice of a pod until it ran, in seconds.', {
      buckets: startBuckets,
    }),
    podWorkerStartDuration: histogram('pod_worker_start_duration_seconds', 'How long it took from the first notice of a pod until its first sync, in seconds.'),
    podWorkerDuration: histogram('pod_worker_duration_seconds', 'How long one step of a pod took, by why it was taken, in seconds.', {
      labels: ['operation_type'],
    }),
    containersPerPod: histogram('containers_per_pod_count', 'How many containers pods have.', { buckets: [1, 2, 4, 8, 16] }),
    starts: createStartTracker(clock, {
      sli: histogram(
        'pod_start_sli_duration_seconds',
        `Duration in seconds to start a pod, excluding time to pull images and run init containers, ${untilReported}`,
        {
          buckets: startBuckets,
        },
      ),
      total: histogram(
        'pod_start_total_duration_seconds',
        `Duration in seconds to start a pod since creation, including time to pull images and run init containers, ${untilReported}`,
        { buckets: startBuckets },
      ),
      first: metrics.gauge({
        name: 'kubelet_first_network_pod_start_sli_duration_seconds',
        help: `Duration in seconds to start the first network pod, excluding time to pull images and run init containers, ${untilReported}`,
      }),
    }),
  }
}

const rejectionReasons = new Set([
  'AppArmor',
  'PodOSSelectorNodeLabelDoesNotMatch',
  'PodOSNotSupported',
  'InvalidNodeInfo',
  'InitContainerRestartPolicyForbidden',
  'SupplementalGroupsPolicyNotSupported',
  'UnexpectedAdmissionError',
  'UnknownReason',
  'UnexpectedPredicateFailureType',
  'OutOfcpu',
  'OutOfmemory',
  'OutOfephemeral-storage',
  'OutOfpods',
  'PodLevelResourcesNotSupported',
  'PodFeatureUnsupported',
  'Evicted',
  'SysctlForbidden',
  'TopologyAffinityError',
  'NodeShutdown',
  'VolumeAttachmentLimitExceeded',
])

/** Unknown reasons are counted under one name, because they may be many. */
function countRejections(metrics: Metrics): (reason: string) => void {
  const rejections = metrics.counter({ name: 'kubelet_admission_rejections_total', help: 'Pods that this node did not take, by why.', labels: ['reason'] })
  return (reason) => {
    const unknown = reason.startsWith('OutOf') ? 'OutOfExtendedResources' : 'Other'
    rejections.inc({ reason: rejectionReasons.has(reason) ? reason : unknown })
  }
}

function countEnds(metrics: Metrics): (before: Frozen<PodStatus>, after: Frozen<PodStatus>) => void {
  const labels = ['container_type', 'exit_code', 'reason']
  const ends = metrics.counter({ name: 'kubelet_terminated_containers_total', help: 'Containers that have ended, by how.', labels })
  const kinds = [
    ['init', 'initContainerStatuses'],
    ['regular', 'containerStatuses'],
    ['ephemeral', 'ephemeralContainerStatuses'],
  ] as const
  return (before, after) => {
    for (const [kind, member] of kinds) {
      for (const { name, state } of after[member] ?? []) {
        if (!state?.terminated || before[member]?.find((old) => old.name === name)?.state?.terminated) continue
        ends.inc({ container_type: containerTypes[kind], exit_code: String(state.terminated.exitCode), reason: state.terminated.reason ?? '' })
      }
    }
  }
}

export interface StartTracker {
  /** The pod is new to this kubelet and has not started yet. */
  seen(pod: FrozenPod): void
  /** An image of the pod was being fetched from then until then, in the clock's monotonic time. */
  pulled(podUid: string, fromMs: number, untilMs: number): void
  /** The API has this status. */
  reported(pod: FrozenPod, status: Frozen<PodStatus>): void
  forget(podUid: string): void
}

interface StartMetrics {
  readonly sli: Histogram
  readonly total: Histogram
  readonly first: Gauge
}

function createStartTracker(clock: Clock, { sli, total, first }: StartMetrics): StartTracker {
  const waiting = new Map<string, { pullFromMs?: number; pullUntilMs?: number }>()
  let isFirst = true
  return {
    seen: (pod) => {
      if (pod.metadata.creationTimestamp && !pod.status?.startTime && !pod.metadata.deletionTimestamp) waiting.set(pod.metadata.uid ?? '', {})
    },
    pulled: (podUid, fromMs, untilMs) => {
      const pull = waiting.get(podUid)
      if (!pull) return
      pull.pullFromMs ??= fromMs
      pull.pullUntilMs = untilMs
    },
    reported: (pod, status) => {
      const uid = pod.metadata.uid ?? ''
      const pull = waiting.get(uid)
      if (!pull || !hasStarted(status)) return
      waiting.delete(uid)
      if (isTerminalPhase(status.phase)) return
      const totalMs = clock.now() - (parseTime(pod.metadata.creationTimestamp ?? '') ?? clock.now())
      const pullMs = (pull.pullUntilMs ?? 0) - (pull.pullFromMs ?? 0)
      const sliSeconds = Math.max(0, totalMs - pullMs - initMs(status.initContainerStatuses ?? [])) / 1000
      total.observe(totalMs / 1000)
      sli.observe(sliSeconds)
      if (isFirst && !pod.spec.hostNetwork) {
        isFirst = false
        first.set(sliSeconds)
      }
    },
    forget: (podUid) => void waiting.delete(podUid),
  }
}

/** Every regular container runs, or has run. */
function hasStarted({ phase, containerStatuses }: Frozen<PodStatus>): boolean {
  if (isTerminalPhase(phase)) return true
  return phase === 'Running' && (containerStatuses ?? []).every(({ state }) => state?.running || state?.terminated)
}

/** From the start of the first init container that has ended to the end of the last. */
function initMs(statuses: readonly Frozen<ContainerStatus>[]): number {
  const ended = statuses.flatMap(({ state }) => state?.terminated ?? [])
  const times = (of: (one: (typeof ended)[number]) => string | undefined) => ended.flatMap((one) => parseTime(of(one) ?? '') ?? [])
  const [starts, ends] = [times(({ startedAt }) => startedAt), times(({ finishedAt }) => finishedAt)]
  return starts.length === 0 || ends.length === 0 ? 0 : Math.max(0, greatest(ends) - least(starts))
}
