/**
 * Turns runtime events into pods to look at (L3): containerd's stream first, a slow relist for what it missed.
 * Upstream: kubelet/pleg evented.go and generic.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { KubeletContext } from '../core/context.ts'
import type { PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { labelKeys } from '../core/runtimeLabels.ts'
import { createPodGauges } from './podGauges.ts'
import type { PodWorkers } from './podWorkers.ts'

export interface PodEvents {
  /** A step has read this status of its pod: it is not reported as a change again. */
  note(status: PodRuntimeStatus): void
  /**
   * Whether the runtime may have containers of a pod that had no step yet. After a relist it has none that were not listed:
   * only the pod's own steps create more.
   */
  mayHold(uid: string): boolean
  /** Until aborted; notifies the workers of each pod whose containers or sandboxes changed. */
  run(workers: Pick<PodWorkers, 'runtimeChanged' | 'podCounts'>, signal: AbortSignal): Promise<void>
  /** How long the last relist took, in milliseconds, and when it ended: for health and metrics. */
  lastRelist(): { readonly tookMs: number; readonly atMs: number }
}

const resubscribeMs = 1_000
/** containerd sends the event of an exit before its CRI answers show it: read once more, and again for a slow machine. */
const settleMs = [40, 400] as const

export function createPodEvents(context: KubeletContext): PodEvents {
  const { runtime, clock, log, config } = context
  const podOf = new Map<string, string>()
  /** id → state, as its pod's last step or the last relist has seen it. */
  let known = new Map<string, string>()
  let hasListed = false
  let last = { tookMs: 0, atMs: clock.monotonicMs() }
  const gauges = createPodGauges(context.metrics)
  const measures = relistMetrics(context)

  const relist = async ({ runtimeChanged, podCounts }: Pick<PodWorkers, 'runtimeChanged' | 'podCounts'>): Promise<void> => {
    const startedMs = clock.monotonicMs()
    measures.started(startedMs)
    const [sandboxes, containers] = await Promise.all([runtime.listPodSandbox(), runtime.listContainers()])
    gauges.runtime(sandboxes, containers)
    gauges.workers(podCounts())
    const now = new Map<string, string>()
    for (const item of [...sandboxes, ...containers]) {
      now.set(item.id, item.state)
      podOf.set(item.id, item.labels[labelKeys.podUid] ?? '')
    }
    const changed = new Set<string>()
    for (const [id, state] of now) if (known.get(id) !== state) changed.add(podOf.get(id) ?? '')
    for (const id of known.keys()) if (!now.has(id)) changed.add(podOf.get(id) ?? '')
    for (const id of podOf.keys()) if (!now.has(id)) podOf.delete(id)
    known = now
    hasListed = true
    for (const uid of changed) runtimeChanged(uid)
    last = { tookMs: clock.monotonicMs() - startedMs, atMs: clock.monotonicMs() }
    measures.duration.observe(last.tookMs / 1000)
  }

  const relistForever = async (workers: Pick<PodWorkers, 'runtimeChanged' | 'podCounts'>, signal: AbortSignal): Promise<void> => {
    if (runtime.eventsAreComplete || config.relistPeriodMs <= 0) return
    while (!signal.aborted) {
      await relist(workers).catch((error: unknown) => log.v(1).info('Relist failed', { error: messageOf(error) }))
      await clock.sleep(config.relistPeriodMs, signal).catch(() => {})
    }
  }

  const follow = async (workers: Pick<PodWorkers, 'runtimeChanged' | 'podCounts'>, signal: AbortSignal): Promise<void> => {
    const { runtimeChanged } = workers
    while (!signal.aborted) {
      try {
        for await (const { containerId } of runtime.events(signal)) {
          const uid = podOf.get(containerId)
          // An unknown id is being created by a step, which reads it when it is done.
          if (!uid) continue
          runtimeChanged(uid)
          if (!runtime.eventsAreComplete) for (const ms of settleMs) clock.timer(ms, () => runtimeChanged(uid))
        }
      } catch (error) {
        log.v(1).info('Runtime event stream ended', { error: messageOf(error) })
      }
      if (signal.aborted) return
      await clock.sleep(resubscribeMs, signal).catch(() => {})
      // Events before the subscription are lost: read everything once.
      await relist(workers).catch(() => {})
    }
  }

  return {
    note: ({ uid, sandboxes, containers }) => {
      for (const { id, state } of [...sandboxes, ...containers.map(({ status }) => status)]) {
        podOf.set(id, uid)
        known.set(id, state)
      }
    },
    mayHold: (uid) => !hasListed || [...podOf.values()].includes(uid),
    run: async (workers, signal) => {
      await Promise.all([follow(workers, signal), relistForever(workers, signal)])
    },
    lastRelist: () => last,
  }
}

/** How often the runtime is asked for everything, and how long it takes to answer. */
function relistMetrics({ metrics, clock }: KubeletContext) {
  const duration = metrics.histogram({ name: 'kubelet_pleg_relist_duration_seconds', help: 'How long a list of all pods of the runtime took, in seconds.' })
  const interval = metrics.histogram({ name: 'kubelet_pleg_relist_interval_seconds', help: 'How long there was between two lists of all pods, in seconds.' })
  const lastSeen = metrics.gauge({ name: 'kubelet_pleg_last_seen_seconds', help: 'Time of the last list of the pods in the runtime, in seconds since 1970.' })
  metrics.counter({ name: 'kubelet_pleg_discard_events', help: 'Pod lifecycle events that were dropped because the channel was full.' })
  let beforeMs: number | undefined
  return {
    duration,
    started: (nowMs: number) => {
      if (beforeMs !== undefined) interval.observe((nowMs - beforeMs) / 1000)
      beforeMs = nowMs
      lastSeen.set(clock.now() / 1000)
    },
  }
}
