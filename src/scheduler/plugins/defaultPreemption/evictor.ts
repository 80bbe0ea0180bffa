/**
 * Evicts the victims in the background (L3): sets a condition in their status, deletes them, records events, and clears nominations of pods with
 * lower priority for the node. Upstream: framework/preemption prepareCandidateAsync.
 */
import type { Pod, PodCondition } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { exponentialBuckets } from '#base/metrics'
import { formatTime } from '#base/time'
import { pods } from '#client/builtIn'
import type { Handle } from '../../framework/handle.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import type { Candidate } from './victims.ts'

export interface Evictor {
  /** Whether victims of the pod are still being taken away. */
  isRunning(uid: string): boolean
  evict(pod: PodInfo, candidate: Candidate): void
}

export function createEvictor(handle: Handle, pluginName: string): Evictor {
  /** Preemptor → its last victim, once only that is left: its deletion event may arrive before the delete call returns. */
  const running = new Map<string, { readonly last?: PodInfo; readonly nodeName: string }>()
  const observe = evictionMetrics(handle)
  const victimCounts = handle.metrics.histogram({ name: 'scheduler_preemption_victims', help: 'Victims of one preemption.', buckets: [1, 2, 4, 8, 16, 32, 64] })

  async function run(preemptor: PodInfo, { nodeName }: Candidate, victims: readonly PodInfo[]): Promise<void> {
    const { uid = '' } = preemptor.pod.metadata
    const startedMs = handle.clock.monotonicMs()
    try {
      await clearNominations(handle, preemptor, nodeName)
      await Promise.all(victims.slice(0, -1).map((victim) => takeAway(handle, pluginName, preemptor, victim, nodeName)))
      const last = victims.at(-1) as PodInfo
      running.set(uid, { last, nodeName })
      await takeAway(handle, pluginName, preemptor, last, nodeName)
      running.delete(uid)
      observe('success', startedMs)
    } catch (error) {
      running.delete(uid)
      if (handle.signal.aborted) return
      observe('error', startedMs)
      handle.log.error(error, 'Failed to preempt pods', { preemptor: preemptor.key, node: nodeName })
      // No deletion event will activate the pod.
      handle.activate([preemptor.pod])
    }
  }

  return {
    isRunning: (uid) => {
      const there = running.get(uid)
      if (!there?.last) return there !== undefined
      const victim = handle.snapshot.get(there.nodeName)?.pods.get(there.last.key)?.pod
      return victim !== undefined && victim.metadata.uid === there.last.pod.metadata.uid && !victim.metadata.deletionTimestamp
    },
    evict: (preemptor, candidate) => {
      victimCounts.observe(candidate.victims.length)
      const victims = candidate.victims.filter(({ pod }) => !pod.metadata.deletionTimestamp)
      if (victims.length === 0) return
      running.set(preemptor.pod.metadata.uid ?? '', { nodeName: candidate.nodeName })
      handle.background(run(preemptor, candidate, victims))
    },
  }
}

/** Upstream times its goroutine; this times the promise, from the first write until the last victim is deleted. */
function evictionMetrics({ metrics, clock }: Handle): (result: 'success' | 'error', startedMs: number) => void {
  const labels = ['result']
  const count = metrics.counter({ name: 'scheduler_preemption_goroutines_execution_total', help: 'Evictions in the background that have ended.', labels })
  const buckets = exponentialBuckets(0.01, 2, 20)
  const help = 'Time that evictions in the background took.'
  const seconds = metrics.histogram({ name: 'scheduler_preemption_goroutines_duration_seconds', help, labels, buckets })
  return (result, startedMs) => {
    count.inc({ result })
    seconds.observe((clock.monotonicMs() - startedMs) / 1000, { result })
  }
}

/** Less important pods nominated to the node may not fit there any more: they look for another. */
async function clearNominations(handle: Handle, preemptor: PodInfo, nodeName: string): Promise<void> {
  const others = handle.nominatedTo(nodeName).filter((other) => other.priority < preemptor.priority && other.pod.status?.nominatedNodeName)
  await Promise.all(others.map(({ pod }) => patchStatus(handle, pod, { nominatedNodeName: null })))
}

async function takeAway(handle: Handle, pluginName: string, preemptor: PodInfo, { pod }: PodInfo, nodeName: string): Promise<void> {
  const waiting = handle.waitingPod(pod.metadata.uid ?? '')
  if (waiting) waiting.reject(pluginName, 'preempted')
  else {
    const { namespace, name = '', uid } = pod.metadata
    try {
      await markDisrupted(handle, preemptor, pod)
      await handle.client.of(pods).delete({ namespace, name }, { preconditions: { uid } })
    } catch (error) {
      // Gone already, or another pod of that name.
      if (isStatus(error, 'NotFound') || isStatus(error, 'Conflict')) return
      throw error
    }
  }
  const note = `Preempted by pod ${preemptor.pod.metadata.uid} on node ${nodeName}`
  handle.events.event({ regarding: pod, related: preemptor.pod, type: 'Normal', reason: 'Preempted', action: 'Preempting', note })
}

async function markDisrupted(handle: Handle, preemptor: PodInfo, victim: Frozen<Pod>): Promise<void> {
  const message = `${preemptor.pod.spec.schedulerName ?? handle.profileName}: preempting to accommodate a higher priority pod`
  const old = podCondition(victim, 'DisruptionTarget')
  if (old?.status === 'True' && old.reason === 'PreemptionByScheduler' && old.message === message) return
  const condition: PodCondition = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', message }
  condition.lastTransitionTime = old?.status === 'True' && old.lastTransitionTime ? old.lastTransitionTime : formatTime(handle.clock.now())
  if (victim.metadata.generation !== undefined) condition.observedGeneration = victim.metadata.generation
  await patchStatus(handle, victim, { conditions: [condition] })
}

async function patchStatus(handle: Handle, { metadata: { namespace, name = '', uid } }: Frozen<Pod>, status: Record<string, unknown>): Promise<void> {
  await handle.client.of(pods).patch({ namespace, name }, 'strategic', { metadata: { uid }, status }, { subresource: 'status' })
}
