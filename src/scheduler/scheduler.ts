/**
 * The scheduler (L3): watches pods and nodes, finds a node for each pod that has none, and binds it through the API. Cycles run one at a time on
 * the cache; bindings run beside them. Upstream: pkg/scheduler (v1.36).
 */
import { setImmediate } from 'node:timers/promises'
import type { Node, Pod, PodCondition } from '#api/gen/types/core.v1'
import { isPodTerminal, podCondition } from '#api/helpers/pods'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import { formatTime } from '#base/time'
import { nodes, pods } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { podInfo } from './framework/nodeInfo.ts'
import { defaultPlugins, type ProfilePlugin } from './plugins/index.ts'
import { schedulePod } from './schedulePod.ts'
import { SchedulerCache } from './schedulerCache.ts'
import { createSchedulerMetrics, type SchedulerMetrics } from './schedulerMetrics.ts'
import { type QueuedPod, SchedulingQueue } from './schedulingQueue.ts'

export interface SchedulerDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly events: EventRecorder
}

export interface SchedulerConfig {
  readonly schedulerName: string
  readonly plugins: readonly ProfilePlugin[]
  readonly podInitialBackoffMs: number
  readonly podMaxBackoffMs: number
  readonly percentageOfNodesToScore: number
}

export const defaultSchedulerConfig: SchedulerConfig = {
  schedulerName: 'default-scheduler',
  plugins: defaultPlugins,
  podInitialBackoffMs: 1000,
  podMaxBackoffMs: 10_000,
  percentageOfNodesToScore: 0,
}

/** Cycles between two looks at the network, so that watches are not starved. */
const cyclesPerTurn = 32
const maxBindingsInFlight = 128

export function createScheduler(deps: SchedulerDeps, config: SchedulerConfig = defaultSchedulerConfig): Component {
  const metrics = createSchedulerMetrics(deps.metrics, config.schedulerName)
  // Each run begins with an empty memory, which the informers fill: nothing half-done is left over from the one before.
  return { name: 'kube-scheduler', run: (signal) => new Scheduler(deps, config, metrics).run(signal) }
}

class Scheduler {
  readonly #deps: SchedulerDeps
  readonly #config: SchedulerConfig
  readonly #cache = new SchedulerCache()
  readonly #queue: SchedulingQueue
  readonly #metrics: SchedulerMetrics
  readonly #bindings = new Set<Promise<void>>()
  /** Conditions being written, by pod: a later binding waits, so that "not scheduled" cannot arrive after it. */
  readonly #reports = new Map<string, Promise<void>>()
  #startIndex = 0

  constructor(deps: SchedulerDeps, config: SchedulerConfig, metrics: SchedulerMetrics) {
    this.#deps = deps
    this.#config = config
    this.#queue = new SchedulingQueue({
      clock: deps.clock,
      plugins: config.plugins.map(({ plugin }) => plugin),
      initialBackoffMs: config.podInitialBackoffMs,
      maxBackoffMs: config.podMaxBackoffMs,
    })
    this.#metrics = metrics
  }

  async run(signal: AbortSignal): Promise<void> {
    const podInformer = this.#deps.informers.of(pods)
    const nodeInformer = this.#deps.informers.of(nodes)
    const registrations = [
      nodeInformer.addHandler({
        onAdd: (node) => this.#onNodeAdd(node),
        onUpdate: (old, node) => this.#onNodeUpdate(old, node),
        onDelete: (node) => this.#cache.removeNode(node.metadata.name ?? ''),
      }),
      podInformer.addHandler({
        onAdd: (pod) => this.#onPod(pod),
        onUpdate: (old, pod) => this.#onPod(pod, old),
        onDelete: (pod) => this.#onPodDelete(pod),
      }),
    ]
    try {
      await Promise.all([podInformer.synced(signal), nodeInformer.synced(signal)])
      await this.#loop(signal)
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      for (const registration of registrations) registration.remove()
      this.#queue.close()
      await Promise.all(this.#bindings)
    }
  }

  async #loop(signal: AbortSignal): Promise<void> {
    for (let cycles = 1; ; cycles++) {
      const queued = await this.#queue.pop(signal)
      if (!queued) return
      this.#scheduleOne(queued)
      this.#metrics.pending(this.#queue.counts())
      if (cycles % cyclesPerTurn === 0) await setImmediate()
      if (this.#bindings.size >= maxBindingsInFlight) await Promise.race(this.#bindings)
    }
  }

  #scheduleOne(queued: QueuedPod): void {
    const { pod } = queued
    if (pod.metadata.deletionTimestamp || this.#cache.isPlaced(queued.key, pod.metadata.uid)) {
      this.#queue.done(queued.key)
      return
    }
    const startedMs = this.#deps.clock.monotonicMs()
    try {
      this.#tryToPlace(queued, startedMs)
    } catch (error) {
      // One pod that a plugin stumbles over must not keep the others waiting.
      this.#fail(queued, pod, error, startedMs)
    }
  }

  #tryToPlace(queued: QueuedPod, startedMs: number): void {
    const { pod } = queued
    const info = podInfo(pod)
    const result = schedulePod(this.#config.plugins, info, this.#cache, {
      random: this.#deps.random,
      startIndex: this.#startIndex,
      percentageOfNodesToScore: this.#config.percentageOfNodesToScore,
    })
    if ('refused' in result) {
      this.#metrics.attempt('unschedulable', (this.#deps.clock.monotonicMs() - startedMs) / 1000)
      this.#queue.failed(queued, result.refused.refusedBy)
      this.#report(queued.key, pod, 'Unschedulable', result.refused.message)
      return
    }
    const { node, evaluatedNodes } = result.placed
    this.#startIndex = (this.#startIndex + evaluatedNodes) % this.#cache.nodes.length
    this.#cache.assume(info, node.name)
    this.#track(this.#bind(queued, node.name, startedMs))
  }

  /** An error, not a refusal: only time helps. */
  #fail(queued: QueuedPod, pod: Frozen<Pod>, error: unknown, startedMs: number): void {
    const { namespace, name = '' } = pod.metadata
    this.#metrics.attempt('error', (this.#deps.clock.monotonicMs() - startedMs) / 1000)
    this.#queue.failed(queued, new Set())
    this.#deps.log.error(error, 'Failed to schedule pod', { pod: { kind: 'Pod', namespace, name } })
    this.#report(queued.key, pod, 'SchedulerError', error instanceof Error ? error.message : String(error))
  }

  #report(key: string, pod: Frozen<Pod>, reason: string, message: string): void {
    const before = this.#reports.get(key) ?? Promise.resolve()
    const report: Promise<void> = before
      .then(() => this.#reportUnschedulable(pod, reason, message))
      .finally(() => {
        if (this.#reports.get(key) === report) this.#reports.delete(key)
      })
    this.#reports.set(key, report)
    this.#track(report)
  }

  #track(work: Promise<void>): void {
    const tracked: Promise<void> = work.finally(() => this.#bindings.delete(tracked))
    this.#bindings.add(tracked)
  }

  async #bind(queued: QueuedPod, nodeName: string, startedMs: number): Promise<void> {
    const { pod } = queued
    const { namespace, name = '', uid } = pod.metadata
    try {
      await this.#reports.get(queued.key)
      await this.#deps.client.of(pods).createSubresource({ namespace, name }, 'binding', {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { namespace, name, uid },
        target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      })
    } catch (error) {
      this.#cache.forget(queued.key)
      if (isStatus(error, 'NotFound') && queued.pod.metadata.uid === uid) this.#queue.drop(queued)
      else if (isStatus(error, 'NotFound') || isStatus(error, 'Conflict')) {
        // Somebody else has bound it, it is being deleted, or it is another pod of that name by now. The watch says so in its own time;
        // until then nothing may be written about a pod that can have a node.
        this.#metrics.attempt('error', (this.#deps.clock.monotonicMs() - startedMs) / 1000)
        this.#queue.failed(queued, new Set())
      } else this.#fail(queued, pod, new Error(`binding rejected: ${error instanceof Error ? error.message : String(error)}`, { cause: error }), startedMs)
      return
    }
    this.#queue.done(queued.key)
    this.#metrics.attempt('scheduled', (this.#deps.clock.monotonicMs() - startedMs) / 1000)
    this.#metrics.scheduled((this.#deps.clock.now() - queued.firstSeenMs) / 1000, queued.attempts)
    this.#deps.events.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${nodeName}`)
  }

  /** The event, and the condition unless it says so already. */
  async #reportUnschedulable(pod: Frozen<Pod>, reason: string, message: string): Promise<void> {
    const { namespace, name = '' } = pod.metadata
    this.#deps.events.event(pod, 'Warning', 'FailedScheduling', message)
    const old = podCondition(pod, 'PodScheduled')
    if (old?.status === 'False' && old.reason === reason && old.message === message) return
    const lastTransitionTime = old?.status === 'False' && old.lastTransitionTime ? old.lastTransitionTime : formatTime(this.#deps.clock.now())
    const condition: PodCondition = { type: 'PodScheduled', status: 'False', reason, message, lastTransitionTime }
    if (pod.metadata.generation !== undefined) condition.observedGeneration = pod.metadata.generation
    try {
      await this.#deps.client
        .of(pods)
        .patch({ namespace, name }, 'strategic', { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } }, { subresource: 'status' })
    } catch (error) {
      if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict'))
        this.#deps.log.error(error, 'Failed to update pod condition', { pod: { kind: 'Pod', namespace, name } })
    }
  }

  #onNodeAdd(node: Frozen<Node>): void {
    this.#cache.setNode(node)
    this.#queue.onEvent({ type: 'NodeAdd', node })
  }

  #onNodeUpdate(old: Frozen<Node>, node: Frozen<Node>): void {
    if (old === node) return
    this.#cache.setNode(node)
    if (mattersForScheduling(old, node)) this.#queue.onEvent({ type: 'NodeUpdate', old, node })
  }

  #onPod(pod: Frozen<Pod>, old?: Frozen<Pod>): void {
    const key = keyOf(pod)
    if (pod.spec.nodeName) {
      this.#queue.done(key)
      this.#queue.delete(key)
      if (isPodTerminal(pod)) this.#free(pod)
      else {
        this.#cache.setPod(pod)
        if (old && old !== pod) this.#queue.onEvent({ type: 'PodUpdate', old, pod })
      }
      return
    }
    if (isPodTerminal(pod) || pod.metadata.deletionTimestamp || (pod.spec.schedulerName ?? 'default-scheduler') !== this.#config.schedulerName) {
      this.#queue.delete(key)
      return
    }
    this.#queue.set(pod)
  }

  #onPodDelete(pod: Frozen<Pod>): void {
    this.#queue.delete(keyOf(pod))
    this.#free(pod)
  }

  #free(pod: Frozen<Pod>): void {
    this.#cache.removePod(pod)
    if (pod.spec.nodeName) this.#queue.onEvent({ type: 'PodDelete', pod })
  }
}

/** Heartbeats do not free anybody. */
function mattersForScheduling(old: Frozen<Node>, node: Frozen<Node>): boolean {
  return JSON.stringify([old.spec, old.metadata.labels, old.status.allocatable]) !== JSON.stringify([node.spec, node.metadata.labels, node.status.allocatable])
}
