/**
 * The scheduler's writes about pods (L3): the PodScheduled condition, the nominated node, and events.
 * Upstream: schedule_one.go handleSchedulingFailure, updatePod; framework/api_calls.
 */
import type { Pod, PodCondition } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { formatTime } from '#base/time'
import { pods } from '#client/builtIn'
import type { Client } from '#client/client'
import type { EventSeriesRecorder } from '#client/eventSeriesRecorder'

export interface PodReportsDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  /** By profile. */
  readonly recorders: ReadonlyMap<string, EventSeriesRecorder>
}

export interface FailureReport {
  readonly reason: 'Unschedulable' | 'SchedulerError'
  readonly message: string
  /** '' clears it, absent leaves it. */
  readonly nominatedNodeName?: string | undefined
}

/** The longest note of an event that the API takes. */
const maxMessageLength = 1024

export class PodReports {
  readonly #deps: PodReportsDeps
  /** Writes under way, by pod: a later one waits, so that "not scheduled" cannot arrive after the binding. */
  readonly #writing = new Map<string, Promise<void>>()
  /** Nominated nodes that were written, by pod uid: newer than the cached objects. */
  readonly #expected = new Map<string, string>()

  constructor(deps: PodReportsDeps) {
    this.#deps = deps
  }

  /** Resolves when nothing is being written about the pod. */
  async settled(key: string): Promise<void> {
    await this.#writing.get(key)
  }

  /** Whether something is being written about the pod. */
  isWriting(key: string): boolean {
    return this.#writing.has(key)
  }

  scheduled(pod: Frozen<Pod>, nodeName: string): void {
    const { namespace, name, uid = '' } = pod.metadata
    this.#expected.delete(uid)
    const note = `Successfully assigned ${namespace}/${name} to ${nodeName}`
    this.#recorderOf(pod)?.event({ regarding: pod, type: 'Normal', reason: 'Scheduled', action: 'Binding', note })
  }

  failed(pod: Frozen<Pod>, report: FailureReport): Promise<void> {
    const note = truncated(report.message)
    this.#recorderOf(pod)?.event({ regarding: pod, type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', note })
    return this.#afterOthers(pod, () => this.#writeFailure(pod, report))
  }

  /** Writes the nominated node before slow work for the pod on that node. */
  expectOn(pod: Frozen<Pod>, nodeName: string): Promise<void> {
    if (pod.status?.nominatedNodeName === nodeName) return Promise.resolve()
    this.#expected.set(pod.metadata.uid ?? '', nodeName)
    return this.#afterOthers(pod, () => this.#patch(pod, { nominatedNodeName: nodeName }))
  }

  /** The pod is gone, or belongs to another scheduler: forget what was reported of it. */
  forget(uid: string): void {
    this.#expected.delete(uid)
  }

  #recorderOf({ spec }: Frozen<Pod>): EventSeriesRecorder | undefined {
    return this.#deps.recorders.get(spec.schedulerName ?? 'default-scheduler')
  }

  #afterOthers(pod: Frozen<Pod>, write: () => Promise<void>): Promise<void> {
    const key = keyOf(pod)
    const before = this.#writing.get(key)
    const work: Promise<void> = (before ? before.then(write) : write()).finally(() => {
      if (this.#writing.get(key) === work) this.#writing.delete(key)
    })
    this.#writing.set(key, work)
    return work
  }

  /** Writes the condition and the nomination, unless the pod has them already. */
  async #writeFailure(pod: Frozen<Pod>, { reason, message, nominatedNodeName }: FailureReport): Promise<void> {
    const { uid = '' } = pod.metadata
    const renominated = nominatedNodeName !== undefined && nominatedNodeName !== (this.#expected.get(uid) ?? pod.status?.nominatedNodeName ?? '')
    this.#expected.delete(uid)
    const old = podCondition(pod, 'PodScheduled')
    const known = old?.status === 'False' && old.reason === reason && old.message === message
    if (known && !renominated) return
    const status: Record<string, unknown> = renominated ? { nominatedNodeName: nominatedNodeName || null } : {}
    if (!known) {
      const lastTransitionTime = old?.status === 'False' && old.lastTransitionTime ? old.lastTransitionTime : formatTime(this.#deps.clock.now())
      const condition: PodCondition = { type: 'PodScheduled', status: 'False', reason, message, lastTransitionTime }
      if (pod.metadata.generation !== undefined) condition.observedGeneration = pod.metadata.generation
      status.conditions = [condition]
    }
    await this.#patch(pod, status)
  }

  async #patch(pod: Frozen<Pod>, status: Record<string, unknown>): Promise<void> {
    const { namespace, name = '', uid } = pod.metadata
    try {
      await this.#deps.client.of(pods).patch({ namespace, name }, 'strategic', { metadata: { uid }, status }, { subresource: 'status' })
    } catch (error) {
      if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict'))
        this.#deps.log.error(error, 'Failed to update pod status', { pod: { kind: 'Pod', namespace, name } })
    }
  }
}

function truncated(message: string): string {
  return message.length <= maxMessageLength ? message : `${message.slice(0, maxMessageLength - 4)} ...`
}
