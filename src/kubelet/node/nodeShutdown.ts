/**
 * Ends a node's pods in order before the machine shuts down (L3): lower priorities first, each group within its time. At once the node is not ready
 * and takes no pods. Upstream: kubelet/nodeshutdown (v1.36).
 */
import { abortScope } from '#base/abortScope'
import { formatTime, parseTime } from '#base/time'
import { readTextIfExists, writeFileAtomic } from '#host/files'
import type { ShutdownGracePeriod } from '../core/config.ts'
import { type FrozenPod, isTerminalPhase } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { Refusal } from '../core/refusal.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'

export interface NodeShutdown {
  /** Restores the metrics of the last shutdown from disk. */
  restore(): Promise<void>
  /** Resolves when every pod has ended or had its time. A second call joins the first. */
  shutDown(workers: PodWorkers, signal: AbortSignal): Promise<void>
  /** The shutdown was called off: the node takes pods again. */
  cancel(): void
  /** The message for the node's Ready condition. */
  problem(): string | undefined
  refusal(): Refusal | undefined
}

const message = 'Pod was terminated in response to imminent node shutdown.'
const criticalPriority = 2_000_000_000

/** The configured periods by rising priority; the two simple settings are the periods of ordinary and of critical pods. */
export function shutdownPeriods(config: ShutdownConfig): ShutdownGracePeriod[] {
  if (config.shutdownGracePeriodByPodPriority.length > 0) return [...config.shutdownGracePeriodByPodPriority].sort((a, b) => a.priority - b.priority)
  const ordinaryMs = config.shutdownGracePeriodMs - config.shutdownGracePeriodCriticalPodsMs
  if (config.shutdownGracePeriodMs === 0 || ordinaryMs < 0) return []
  return [
    { priority: 0, shutdownGracePeriodSeconds: Math.floor(ordinaryMs / 1000) },
    { priority: criticalPriority, shutdownGracePeriodSeconds: Math.floor(config.shutdownGracePeriodCriticalPodsMs / 1000) },
  ]
}

export interface ShutdownConfig {
  readonly shutdownGracePeriodMs: number
  readonly shutdownGracePeriodCriticalPodsMs: number
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownGracePeriod[]
}

export interface ShutdownGroup {
  readonly period: ShutdownGracePeriod
  readonly pods: readonly FrozenPod[]
}

/** Each pod with the period of the highest priority that it reaches; pods below all priorities are in the lowest group. Groups without pods are left out. */
export function shutdownGroups(periods: readonly ShutdownGracePeriod[], pods: readonly FrozenPod[]): ShutdownGroup[] {
  const groupOf = (pod: FrozenPod) =>
    Math.max(
      0,
      periods.findLastIndex(({ priority }) => priority <= (pod.spec.priority ?? 0)),
    )
  return periods.map((period, index) => ({ period, pods: pods.filter((pod) => groupOf(pod) === index) })).filter(({ pods: own }) => own.length > 0)
}

/** The pod's own grace period, unless the group has less time. */
export function graceSecondsOf(pod: FrozenPod, period: ShutdownGracePeriod): number {
  return Math.min(pod.spec.terminationGracePeriodSeconds ?? Number.POSITIVE_INFINITY, period.shutdownGracePeriodSeconds)
}

/** @param changed the node's condition is another one now */
export function createNodeShutdown(context: KubeletContext, changed: () => void): NodeShutdown {
  const { clock, config, host, log } = context
  const gauge = (which: string) =>
    context.metrics.gauge({ name: `kubelet_graceful_shutdown_${which}_time_seconds`, help: `Last graceful shutdown ${which} time since unix epoch in seconds` })
  const started = gauge('start')
  const ended = gauge('end')
  let isShuttingDown = false
  let underWay: Promise<void> | undefined

  const file = () => host?.path(`${config.rootDirectory}/graceful_node_shutdown_state`) ?? ''
  const restore = async (): Promise<void> => {
    const text = host && (await readTextIfExists(file()))
    if (!text) return
    try {
      const { startTime = '', endTime = '' } = JSON.parse(text) as { startTime?: string; endTime?: string }
      started.set((parseTime(startTime) ?? 0) / 1000)
      ended.set((parseTime(endTime) ?? 0) / 1000)
    } catch (error) {
      log.warn('Failed to load the state of the last shutdown', { file: file(), error: String(error) })
    }
  }
  const remember = async (times: { startTime: string; endTime?: string }): Promise<void> => {
    if (!host) return
    await writeFileAtomic(file(), JSON.stringify(times), 0o644).catch((error: unknown) =>
      log.warn('Failed to write the state of the shutdown', { error: String(error) }),
    )
  }

  const endGroup = async (workers: PodWorkers, { period, pods }: ShutdownGroup, signal: AbortSignal): Promise<void> => {
    for (const pod of pods) {
      const ending = { phase: 'Failed', reason: 'Terminated', message, disrupted: true } as const
      workers.end({ uid: pod.metadata.uid ?? '', ending, graceSeconds: graceSecondsOf(pod, period) })
    }
    const gone = Promise.all(pods.map((pod) => workers.ended(pod.metadata.uid ?? ''))).then(() => {})
    using late = abortScope(signal)
    const time = clock.sleep(period.shutdownGracePeriodSeconds * 1000, late.signal).catch(() => {})
    await Promise.race([gone, time])
    late.abort()
  }

  const run = async (workers: PodWorkers, signal: AbortSignal): Promise<void> => {
    const periods = shutdownPeriods(config)
    if (periods.length === 0) return
    isShuttingDown = true
    changed()
    const startTime = formatTime(clock.now())
    started.set(clock.now() / 1000)
    ended.set(0)
    await remember({ startTime })
    const pods = workers.list().filter((pod) => !isTerminalPhase(pod.status?.phase))
    for (const group of shutdownGroups(periods, pods)) if (!signal.aborted) await endGroup(workers, group, signal)
    ended.set(clock.now() / 1000)
    await remember({ startTime, endTime: formatTime(clock.now()) })
  }

  return {
    restore,
    shutDown: (workers, signal) => {
      underWay ??= run(workers, signal).finally(() => {
        underWay = undefined
      })
      return underWay
    },
    cancel: () => {
      isShuttingDown = false
      changed()
    },
    problem: () => (isShuttingDown ? 'node is shutting down' : undefined),
    refusal: () => (isShuttingDown ? { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' } : undefined),
  }
}
