/**
 * How many pods a controller may create now (L3). While the scheduler places them there is no limit; where a namespace has many that wait for a
 * node, controllers create no faster than upstream's do, so that one that asks for two thousand million neither fills the memory nor keeps the
 * scheduler from others' pods. Upstream: --kube-api-qps and --kube-api-burst of kube-controller-manager (v1.36), which limit all calls.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Clock } from '#base/clock'
import type { ReadableStore } from '#client/cache/indexer'
import { unscheduledPodsIndex } from './indexes.ts'

/** So many pods of a namespace may wait for a node before it matters. */
const freeUnscheduled = 1000
/** Upstream's calls a second. */
const creationsPerSecond = 20
/** Beyond this many the pace falls as their number grows: memory is limited, too. */
const steadyUnscheduled = 5000
const lookAgainMs = 250

export interface Allowance {
  readonly count: number
  /** When to ask for the others. */
  readonly waitMs: number | undefined
}

export interface PodPace {
  /** @param wanted how many pods the controller would create in the namespace */
  take(namespace: string | undefined, wanted: number): Allowance
}

/** One for each controller. @param pods must have the index of unscheduled pods */
export function createPodPace(clock: Clock, pods: ReadableStore<Pod>): PodPace {
  /** When the namespace may have its next pod. */
  const nextMs = new Map<string, number>()
  return {
    take(namespace = '', wanted) {
      const unscheduled = pods.countByIndex(unscheduledPodsIndex, namespace)
      const free = Math.max(0, freeUnscheduled - unscheduled)
      if (wanted <= free) {
        nextMs.delete(namespace)
        return { count: wanted, waitMs: undefined }
      }
      const everyMs = (1000 / creationsPerSecond) * Math.max(1, unscheduled / steadyUnscheduled)
      const nowMs = clock.monotonicMs()
      const dueMs = Math.max(nextMs.get(namespace) ?? nowMs, nowMs - Math.max(2 * lookAgainMs, everyMs))
      const paced = Math.max(0, Math.floor((nowMs - dueMs) / everyMs))
      nextMs.set(namespace, dueMs + paced * everyMs)
      const count = Math.min(wanted, free + paced)
      return { count, waitMs: count < wanted ? Math.max(lookAgainMs, everyMs) : undefined }
    },
  }
}
