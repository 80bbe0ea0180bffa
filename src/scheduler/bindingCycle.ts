/**
 * What follows a decision (L3): wait for permission, prepare, bind; or undo, report and put the pod back.
 * Upstream: pkg/scheduler/schedule_one.go bindingCycle, handleBindingCycleError, handleSchedulingFailure (v1.36).
 */
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { type Tracer, traced } from '#base/traceContext'
import type { ObjectTrace } from '#trace/objectTrace'
import { noteAttempt } from './attemptTrace.ts'
import type { Extenders } from './extenders/extenders.ts'
import { actions } from './framework/clusterEvent.ts'
import type { CycleState } from './framework/cycleState.ts'
import type { PodInfo } from './framework/podInfo.ts'
import type { Profile } from './framework/profile.ts'
import type { Refusal } from './framework/status.ts'
import type { Nominator } from './nominator.ts'
import type { PodReports } from './podReports.ts'
import type { SchedulerCache } from './schedulerCache.ts'
import type { SchedulerMetrics } from './schedulerMetrics.ts'
import type { Failure, QueuedPod, SchedulingQueue } from './schedulingQueue.ts'
import type { WaitingPods } from './waitingPods.ts'

/** What scheduling and binding cycles share. */
export interface CycleParts {
  readonly clock: Clock
  readonly log: Logger
  readonly cache: SchedulerCache
  readonly queue: SchedulingQueue
  readonly nominator: Nominator
  readonly waiting: WaitingPods
  readonly reports: PodReports
  readonly schedulerMetrics: SchedulerMetrics
  readonly extenders: Extenders
  readonly profiles: ReadonlyMap<string, Profile>
  readonly signal: AbortSignal
  readonly tracer?: Tracer | undefined
  readonly trace?: ObjectTrace | undefined
  /** Work that the scheduler waits for when it stops. */
  readonly track: (work: Promise<void>) => void
}

/** A pod with the node that was chosen and assumed for it. */
export interface Attempt {
  readonly queued: QueuedPod
  readonly profile: Profile
  readonly pod: PodInfo
  readonly state: CycleState
  readonly nodeName: string
  readonly startedMs: number
}

export interface Refused {
  readonly refusal: Refusal
  readonly plugin: string
}

export class BindingCycle {
  readonly #deps: CycleParts
  #binding = 0
  #waiter: (() => void) | undefined

  constructor(deps: CycleParts) {
    this.#deps = deps
  }

  hasRoom(limit: number): boolean {
    return this.#binding < limit
  }

  /** Waits while `limit` bindings are being written. */
  async room(limit: number): Promise<void> {
    while (this.#binding >= limit) {
      await new Promise<void>((resolve) => {
        this.#waiter = resolve
      })
    }
  }

  start(attempt: Attempt, waits: ReadonlyMap<string, number>): void {
    const { track, schedulerMetrics, tracer } = this.#deps
    schedulerMetrics.binding(1)
    const { pod } = attempt.queued
    const options = { name: 'Bind', service: 'kube-scheduler', parent: tracer?.followedTraceOf(pod), attributes: { node: attempt.nodeName } }
    track(traced(tracer, options, () => this.#run(attempt, waits)).finally(() => schedulerMetrics.binding(-1)))
  }

  async #run(attempt: Attempt, waits: ReadonlyMap<string, number>): Promise<void> {
    const { waiting, reports, queue, signal, clock, schedulerMetrics } = this.#deps
    const { profile, pod, state, nodeName, queued } = attempt
    try {
      const preBinders = profile.points.preBind.filter((plugin) => plugin.preBindPreFlight?.(state, pod, nodeName) !== 'skip')
      if (waits.size > 0 || preBinders.length > 0) await reports.expectOn(pod.pod, nodeName)
      if (waits.size > 0) {
        const waitedFromMs = clock.monotonicMs()
        const verdict = await waiting.wait(pod, waits, signal)
        schedulerMetrics.permitWait(verdict ? 'rejected' : 'allowed', (clock.monotonicMs() - waitedFromMs) / 1000)
        if (verdict) return this.undo(attempt, verdict)
      }
      const timer = schedulerMetrics.timer(profile.name)
      for (const plugin of preBinders) {
        const refusal = await plugin.preBind(state, pod, nodeName, signal)
        if (!refusal) continue
        timer.done('PreBind', refusal.code)
        return this.undo(attempt, { refusal, plugin: plugin.name })
      }
      timer.done('PreBind', 'Success')
      // Nothing can refuse the pod from here on.
      queue.settle(queued)
      if (reports.isWriting(queued.key)) await reports.settled(queued.key)
      const startedMs = clock.monotonicMs()
      await this.#bind(attempt)
      noteAttempt(this.#deps, pod.pod, { what: 'bind', startedMs, node: nodeName, result: `bound to ${nodeName}` })
      timer.done('Bind', 'Success')
    } catch (error) {
      this.#bindingFailed(attempt, error)
      return
    }
    this.#bound(attempt)
  }

  async #bind({ profile, pod, state, nodeName }: Attempt): Promise<void> {
    this.#binding++
    try {
      const extender = this.#deps.extenders.binderOf(pod)
      if (extender?.bind) {
        await extender.bind(pod, nodeName, this.#deps.signal)
        return
      }
      for (const plugin of profile.points.bind) {
        const answer = await plugin.bind(state, pod, nodeName, this.#deps.signal)
        if (answer === 'skip') continue
        if (answer) throw new Error(answer.reasons.join(', '))
        return
      }
      throw new Error('no bind plugin would bind the pod')
    } finally {
      this.#binding--
      this.#waiter?.()
      this.#waiter = undefined
    }
  }

  #bound({ queued, profile, pod, state, nodeName, startedMs }: Attempt): void {
    const { queue, schedulerMetrics: metrics, clock, reports, log } = this.#deps
    queue.drop(queued)
    metrics.attempt('scheduled', profile.name, (clock.monotonicMs() - startedMs) / 1000)
    metrics.scheduled((clock.now() - queued.firstSeenMs) / 1000, queued.attempts, queued.wasFlushed)
    reports.scheduled(pod.pod, nodeName)
    for (const plugin of profile.points.postBind) {
      try {
        plugin.postBind(state, pod, nodeName)
      } catch (error) {
        log.error(error, 'A plugin failed after the binding', { plugin: plugin.name })
      }
    }
  }

  #bindingFailed(attempt: Attempt, error: unknown): void {
    const { queue, schedulerMetrics: metrics, clock, reports } = this.#deps
    const { queued, profile, pod, startedMs } = attempt
    const { uid } = pod.pod.metadata
    this.#release(attempt)
    if (isStatus(error, 'NotFound') || isStatus(error, 'Conflict')) reports.forget(uid ?? '')
    if (isStatus(error, 'NotFound') && queued.pod.metadata.uid === uid) queue.drop(queued)
    else if (isStatus(error, 'NotFound') || isStatus(error, 'Conflict')) {
      // Another client has bound the pod, it is being deleted, or it was replaced by another pod of its name. The watch will report that;
      // until then write nothing about a pod that can have a node.
      metrics.attempt('error', profile.name, (clock.monotonicMs() - startedMs) / 1000)
      queue.failed(queued, nobody)
    } else this.error(queued, profile, new Error(`binding rejected: ${messageOf(error)}`, { cause: error }), startedMs)
  }

  /** Takes back what was assumed and reserved, because a plugin refused the pod after the decision. */
  undo(attempt: Attempt, { refusal, plugin }: Refused): void {
    this.#release(attempt)
    const { queued, profile, pod, startedMs } = attempt
    const by = new Set(plugin === '' ? [] : [plugin])
    const failure: Failure = refusal.code === 'Pending' ? { refusedBy: nobody.refusedBy, pendingOn: by } : { refusedBy: by, pendingOn: nobody.pendingOn }
    const message = `0/1 nodes are available: 1 ${refusal.reasons.join(', ')}.`
    this.refuse(queued, profile, pod, message, failure, startedMs, '')
  }

  /** Takes back what was assumed and reserved, because a plugin failed after the decision: the pod is tried again after a wait. */
  failed(attempt: Attempt, error: unknown): void {
    this.#release(attempt)
    this.error(attempt.queued, attempt.profile, error, attempt.startedMs)
  }

  #release({ profile, pod, state, nodeName }: Attempt): void {
    const { cache, queue, log } = this.#deps
    for (const plugin of [...profile.points.reserve].reverse()) {
      try {
        plugin.unreserve?.(state, pod, nodeName)
      } catch (error) {
        log.error(error, 'A plugin failed to take a reservation back', { plugin: plugin.name })
      }
    }
    if (!cache.forget(pod.key, pod.pod.metadata.uid)) return
    queue.onEvent({ resource: 'AssignedPod', action: actions.Delete, old: pod.pod, object: undefined })
  }

  /** No node, or no longer: condition, event, and back to the queue. */
  refuse(queued: QueuedPod, profile: Profile, pod: PodInfo, message: string, failure: Failure, startedMs: number, nominatedNodeName: string | undefined): void {
    const { queue, schedulerMetrics: metrics, clock, nominator, reports, track } = this.#deps
    metrics.attempt('unschedulable', profile.name, (clock.monotonicMs() - startedMs) / 1000)
    if (nominatedNodeName !== undefined) nominator.set(pod, nominatedNodeName)
    else if (pod.pod.status?.nominatedNodeName) nominator.set(pod, pod.pod.status.nominatedNodeName)
    queue.failed(queued, failure)
    track(reports.failed(pod.pod, { reason: 'Unschedulable', message, nominatedNodeName }))
  }

  /** An error, not a refusal: only time helps. */
  error(queued: QueuedPod, profile: Profile, error: unknown, startedMs: number): void {
    const { queue, schedulerMetrics: metrics, clock, reports, track, log } = this.#deps
    const { pod } = queued
    const { namespace, name = '' } = pod.metadata
    metrics.attempt('error', profile.name, (clock.monotonicMs() - startedMs) / 1000)
    queue.failed(queued, nobody)
    log.error(error, 'Failed to schedule pod', { pod: { kind: 'Pod', namespace, name } })
    track(reports.failed(pod, { reason: 'SchedulerError', message: messageOf(error), nominatedNodeName: '' }))
  }
}

const nobody: Failure = { refusedBy: new Set(), pendingOn: new Set() }
