/**
 * Evicts pods before the node runs out of resources (L3): first pods beyond their storage limits; under pressure it deletes unused containers and images,
 * then evicts one pod a round. In order: observe.ts measures the node, localStorage.ts and thresholds.ts decide whether to evict, ranking.ts decides which pod.
 * Upstream: kubelet/eviction/eviction_manager.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import { type FrozenPod, isStaticPod, isTerminalPhase } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { isCriticalPod } from '../core/criticalPods.ts'
import { podReference } from '../core/podReference.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'
import { limitsStorage, storageExcess } from './localStorage.ts'
import { hasDedicatedImageFs, type MountedVolumesReader, observe, podUsages } from './observe.ts'
import { evictionNotice, rankForEviction } from './ranking.ts'
import {
  type EvictionSignal,
  nextState,
  nothingMet,
  type Observations,
  type Pressure,
  parseThresholds,
  pressureOf,
  resourceOf,
  type Threshold,
  thresholdsMet,
  withContainerFilesystem,
  worstOf,
} from './thresholds.ts'

export interface EvictionManager {
  pressure(): Readonly<Record<Pressure, boolean>>
  /** Until aborted. */
  run(workers: PodWorkers, reclaim: Reclaim, signal: AbortSignal): Promise<void>
}

/** Frees resources before pods are evicted. */
export interface Reclaim {
  deleteUnusedContainers(): Promise<void>
  deleteUnusedImages(): Promise<void>
}

const periodMs = 10_000
/**
 * An evicted pod and its volumes have this long to be removed before the next round: until then the disk is as full as before,
 * and another pod would be evicted for it.
 */
const cleanUpMs = 30_000
const cleanUpPollMs = 1_000
const immediateGraceSeconds = 1

interface Round {
  readonly workers: PodWorkers
  readonly reclaim: Reclaim
  readonly dedicatedImageFs: boolean
  readonly thresholds: readonly Threshold[]
}

export function createEvictionManager(context: KubeletContext, volumes: MountedVolumesReader): EvictionManager {
  const { clock, config, host, log, recorder } = context
  const configured = parseThresholds(config)
  const evictions = context.metrics.counter({
    name: 'kubelet_evictions',
    help: 'How many pods were evicted, by signal.',
    labels: ['eviction_signal'],
  })
  const statsAge = context.metrics.histogram({
    name: 'kubelet_eviction_stats_age_seconds',
    help: 'How old the figures were for which a pod was evicted, by signal, in seconds.',
    labels: ['eviction_signal'],
  })
  let state = nothingMet

  const evict = (workers: PodWorkers, pod: FrozenPod, eviction: Eviction): boolean => {
    if (isCriticalPod(pod) || isStaticPod(pod)) {
      log.v(1).info('Eviction manager: cannot evict a critical pod', { pod: pod.metadata.name, namespace: pod.metadata.namespace })
      return false
    }
    const { message, annotations, disrupted, graceSeconds } = eviction
    recorder.event(podReference(pod), 'Warning', 'Evicted', message, annotations)
    workers.end({ uid: pod.metadata.uid ?? '', ending: { phase: 'Failed', reason: 'Evicted', message, disrupted }, graceSeconds })
    evictions.inc({ eviction_signal: eviction.signal })
    return true
  }

  const evictForStorage = async ({ workers, dedicatedImageFs }: Round, pods: readonly FrozenPod[]): Promise<FrozenPod[]> => {
    const limited = config.localStorageCapacityIsolation ? pods.filter(limitsStorage) : []
    if (!host || limited.length === 0) return []
    const usages = await podUsages(context, host, volumes, limited, { disk: true, processes: false })
    return limited.filter((pod) => {
      const usage = usages.get(pod.metadata.uid ?? '')
      const excess = usage && storageExcess(pod, usage, dedicatedImageFs)
      return excess !== undefined && evict(workers, pod, { ...excess, annotations: {}, disrupted: false, graceSeconds: immediateGraceSeconds })
    })
  }

  /** Deletes unused containers and images under disk pressure. Returns whether that was enough. */
  const reclaimDisk = async ({ reclaim, dedicatedImageFs, thresholds }: Round, signal: EvictionSignal): Promise<boolean> => {
    if (!host || pressureOf(signal) !== 'disk' || (dedicatedImageFs && signal.startsWith('nodefs.'))) return false
    for (const work of [reclaim.deleteUnusedContainers, reclaim.deleteUnusedImages]) {
      await work().catch((error: unknown) =>
        log.warn('Eviction manager: unexpected error when attempting to reduce resource pressure', { error: String(error) }),
      )
    }
    return thresholdsMet(thresholds, await observe(context, host), true).length === 0
  }

  const evictForThreshold = async (
    round: Round,
    worst: Threshold,
    met: readonly Threshold[],
    seen: Observations,
    pods: readonly FrozenPod[],
  ): Promise<FrozenPod[]> => {
    if (!host) return []
    const startedMs = clock.monotonicMs()
    const resource = resourceOf(worst.signal)
    const usages = await podUsages(context, host, volumes, pods, { disk: pressureOf(worst.signal) === 'disk', processes: resource === 'pids' })
    const usageOf = (pod: FrozenPod) => usages.get(pod.metadata.uid ?? '')
    const graceSeconds = worst.graceMs === 0 ? immediateGraceSeconds : config.evictionMaxPodGracePeriod
    for (const pod of rankForEviction(pods, usageOf, worst.signal, round.dedicatedImageFs)) {
      const notice = evictionNotice(pod, resource, usageOf(pod), met, seen)
      if (!evict(round.workers, pod, { signal: worst.signal, ...notice, disrupted: true, graceSeconds })) continue
      for (const { signal } of met) statsAge.observe((clock.monotonicMs() - startedMs) / 1000, { eviction_signal: signal })
      return [pod]
    }
    return []
  }

  /** Returns the evicted pods. */
  const synchronize = async (round: Round): Promise<FrozenPod[]> => {
    if (!host) return []
    const pods = round.workers.list().filter((pod) => !isTerminalPhase(pod.status?.phase) && !round.workers.isTerminated(pod.metadata.uid ?? ''))
    const seen = await observe(context, host)
    state = nextState(state, round.thresholds, seen, clock.monotonicMs())
    const beyondLimits = await evictForStorage(round, pods)
    if (beyondLimits.length > 0) return beyondLimits
    const worst = worstOf(state.met)
    if (!worst) return []
    const resource = resourceOf(worst.signal)
    recorder.event({ kind: 'Node', name: config.nodeName, uid: config.nodeName }, 'Warning', 'EvictionThresholdMet', `Attempting to reclaim ${resource}`)
    return (await reclaimDisk(round, worst.signal)) ? [] : evictForThreshold(round, worst, state.met, seen, pods)
  }

  const cleanedUp = async (workers: PodWorkers, pods: readonly FrozenPod[], signal: AbortSignal): Promise<void> => {
    const deadlineMs = clock.monotonicMs() + cleanUpMs
    while (!signal.aborted && clock.monotonicMs() < deadlineMs) {
      await clock.sleep(cleanUpPollMs, signal).catch(() => {})
      if (pods.every((pod) => workers.isFinished(pod.metadata.uid ?? ''))) return
    }
  }

  return {
    pressure: () => {
      const holds = (which: Pressure) => {
        const seenMs = state.pressureSeenMs.get(which)
        return seenMs !== undefined && clock.monotonicMs() - seenMs < config.evictionPressureTransitionPeriodMs
      }
      return { memory: holds('memory'), disk: holds('disk'), pid: holds('pid') }
    },
    run: async (workers, reclaim, signal) => {
      if (!host || (configured.length === 0 && !config.localStorageCapacityIsolation)) return
      let round: Round | undefined
      while (!signal.aborted) {
        try {
          if (!round) {
            const dedicatedImageFs = await hasDedicatedImageFs(context, host)
            round = { workers, reclaim, dedicatedImageFs, thresholds: withContainerFilesystem(configured, dedicatedImageFs) }
          }
          const evicted = await synchronize(round)
          if (evicted.length > 0) {
            await cleanedUp(workers, evicted, signal)
            continue
          }
        } catch (error) {
          log.warn('Eviction manager: failed to synchronize', { error: messageOf(error) })
        }
        await clock.sleep(periodMs, signal).catch(() => {})
      }
    },
  }
}

interface Eviction {
  readonly signal: string
  readonly message: string
  readonly annotations: Readonly<Record<string, string>>
  /** Tells controllers that the pod did nothing wrong. */
  readonly disrupted: boolean
  readonly graceSeconds: number
}
