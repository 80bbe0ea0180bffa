/**
 * Daemon pods that ended and are to be replaced (L3). A failed pod must not be replaced at once on the same node: a kubelet that turns each
 * away must not be asked without end. Waits double from 1 s to 15 min and start over after twice the longest without a failure.
 * Upstream: failedPodsBackoff in pkg/controller/daemon/daemon_controller.go, client-go/util/flowcontrol/backoff.go (v1.36).
 */
import type { DaemonSet } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { least } from '#base/extremes'
import type { EventRecorder } from '#client/eventRecorder'
import type { DaemonPlan } from './plan.ts'

const initialMs = 1_000
const maxMs = 15 * 60_000

export interface EndedPods {
  /** Returns the pods of `ended` to delete now, after recording an event for each, and how long to wait for the others. */
  replaceable(set: Frozen<DaemonSet>, ended: DaemonPlan['ended']): { readonly pods: Frozen<Pod>[]; readonly waitMs: number | undefined }
}

export function createEndedPods(clock: Clock, events: EventRecorder): EndedPods {
  /** By set and node. */
  const failures = new Map<string, { readonly ms: number; readonly sinceMs: number }>()

  function forgetOld(): void {
    for (const [key, { sinceMs }] of failures) if (clock.monotonicMs() - sinceMs > 2 * maxMs) failures.delete(key)
  }

  /** 0, and the next wait is longer, when the pod may go. */
  function msUntilReplacement(key: string): number {
    const nowMs = clock.monotonicMs()
    const last = failures.get(key)
    const leftMs = last ? last.sinceMs + last.ms - nowMs : 0
    if (leftMs > 0) return leftMs
    failures.set(key, { ms: last ? Math.min(last.ms * 2, maxMs) : initialMs, sinceMs: nowMs })
    return 0
  }

  return {
    replaceable(set, ended) {
      forgetOld()
      const waits: number[] = []
      const pods = ended.flatMap(({ pod, node }) => {
        const which = `daemon pod ${pod.metadata.namespace}/${pod.metadata.name} on node ${node}`
        if (pod.status?.phase === 'Succeeded') {
          events.event(set, 'Normal', 'SucceededDaemonPod', `Found succeeded ${which}, will try to delete it`)
          return [pod]
        }
        const leftMs = msUntilReplacement(`${set.metadata.uid} ${node}`)
        if (leftMs > 0) waits.push(leftMs)
        else events.event(set, 'Warning', 'FailedDaemonPod', `Found failed ${which}, will try to kill it`)
        return leftMs > 0 ? [] : [pod]
      })
      return { pods, waitMs: waits.length > 0 ? least(waits) : undefined }
    },
  }
}
