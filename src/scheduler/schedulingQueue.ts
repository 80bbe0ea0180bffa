/**
 * The pods that wait for a node (L3): active ones in order of priority, those that back off after a failure, and those that nothing can help
 * until something in the cluster changes. Upstream: pkg/scheduler/backend/queue/scheduling_queue.go (v1.36).
 *
 * A pod that failed goes to `unschedulable`, unless a helpful event came while it was being tried: then straight to back-off. An event moves
 * only those pods whose refusing plugins say that it may help, and only their pods are looked at. A pod that backs off after a refusal is tried
 * early when no other pod waits.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { Heap } from '#base/heap'
import { type ClusterEvent, eventLabel } from './framework/clusterEvent.ts'
import type { QueuedPodInfo, SchedulerPlugin } from './framework/plugin.ts'
import { EventLog } from './queueEventLog.ts'
import { type HintTables, type HintTimer, hintTables, type RefusedPod, strategyFor } from './queueingHints.ts'
import { WakeTimer } from './wakeTimer.ts'

export interface QueuedPod extends QueuedPodInfo, RefusedPod {
  pod: Frozen<Pod>
  readonly key: string
  /** When it (last) became active. */
  sinceMs: number
  readonly firstSeenMs: number
  attempts: number
  refusedBy: ReadonlySet<string>
  pendingOn: ReadonlySet<string>
  /** The plugin that keeps it out of the queue. */
  gatedBy: string | undefined
  /** Back-off doubles with each refusal; errors count on their own. */
  refusals: number
  consecutiveErrors: number
  /** No event brought it back the last time, but the limit of waiting. */
  wasFlushed: boolean
}

export type Place = 'active' | 'backoff' | 'unschedulable' | 'gated' | 'inFlight'

export interface QueueProfile {
  readonly plugins: ReadonlyMap<string, SchedulerPlugin>
  readonly points: {
    readonly preEnqueue: readonly (SchedulerPlugin & Required<Pick<SchedulerPlugin, 'preEnqueue'>>)[]
    readonly queueSort: readonly (SchedulerPlugin & Required<Pick<SchedulerPlugin, 'less'>>)[]
  }
}

export interface SchedulingQueueOptions {
  readonly clock: Clock
  /** By scheduler name. */
  readonly profiles: ReadonlyMap<string, QueueProfile>
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** Called for each plugin because of which a pod begins (1) or ceases (-1) to wait: scheduler_unschedulable_pods. */
  readonly onWaiting?: ((plugin: string, profile: string, by: 1 | -1) => void) | undefined
  /** Called for each pod that enters a queue: scheduler_queue_incoming_pods_total. */
  readonly onIncoming?: ((place: 'active' | 'backoff' | 'unschedulable' | 'gated', event: string) => void) | undefined
  /** Called for each event that is kept for pods in flight (1), and forgotten (-1): scheduler_inflight_events. */
  readonly onKept?: ((event: string, by: number) => void) | undefined
  readonly hintTimer?: HintTimer | undefined
}

export interface Failure {
  readonly refusedBy: ReadonlySet<string>
  readonly pendingOn: ReadonlySet<string>
}

interface Entry {
  readonly queued: QueuedPod
  place: Place
  wakeAtMs: number
}

interface BackingOff {
  readonly entry: Entry
  readonly wakeAtMs: number
}

/** Pods that no event freed are tried again after this long, in case a hint was wrong. */
const maxInUnschedulableMs = 300_000
/** Pods that may leave back-off within the same second leave it by priority. */
const backoffWindowMs = 1000

export class SchedulingQueue {
  readonly #options: SchedulingQueueOptions
  readonly #pods = new Map<string, Entry>()
  readonly #counts: Record<Place, number> = { active: 0, backoff: 0, unschedulable: 0, gated: 0, inFlight: 0 }
  readonly #active: Heap<Entry>
  readonly #backoff: Heap<BackingOff>
  readonly #errorBackoff: Heap<BackingOff>
  /** In the order they came, so the first has waited longest. */
  readonly #unschedulable = new Map<string, Entry>()
  /** Waiting pods by the plugins that refused them, so that an event does not walk through all that wait. */
  readonly #waitingOn = new Map<string, Set<Entry>>()
  readonly #log: EventLog
  readonly #hints: ReadonlyMap<string, HintTables>
  readonly #timer: WakeTimer
  #waiter: (() => void) | undefined

  constructor(options: SchedulingQueueOptions) {
    this.#options = options
    this.#hints = new Map([...options.profiles].map(([name, profile]) => [name, hintTables(profile.plugins.values(), options.hintTimer)]))
    this.#log = new EventLog(options.onKept)
    const [profile] = options.profiles.values()
    const order = profile?.points.queueSort[0]
    const less = (a: QueuedPod, b: QueuedPod) => (order ? order.less(a, b) : a.sinceMs - b.sinceMs)
    const byWake = (a: BackingOff, b: BackingOff) =>
      Math.floor(a.wakeAtMs / backoffWindowMs) - Math.floor(b.wakeAtMs / backoffWindowMs) || less(a.entry.queued, b.entry.queued)
    this.#active = new Heap((a, b) => less(a.queued, b.queued))
    this.#backoff = new Heap(byWake)
    this.#errorBackoff = new Heap(byWake)
    this.#timer = new WakeTimer(options.clock, () => this.#wake())
  }

  /** Pods by where they are: the labels of scheduler_pending_pods. */
  counts(): Readonly<Record<Place, number>> {
    return this.#counts
  }

  /** The pod, when it waits here. */
  get(key: string): { readonly queued: QueuedPod; readonly place: Place } | undefined {
    return this.#pods.get(key)
  }

  /** A pod without a node appeared. */
  add(pod: Frozen<Pod>): void {
    const key = keyOf(pod)
    const nowMs = this.#options.clock.now()
    const nothing: ReadonlySet<string> = new Set()
    const queued: QueuedPod = {
      pod,
      key,
      sinceMs: nowMs,
      firstSeenMs: nowMs,
      attempts: 0,
      refusedBy: nothing,
      pendingOn: nothing,
      gatedBy: undefined,
      refusals: 0,
      consecutiveErrors: 0,
      wasFlushed: false,
    }
    this.delete(key)
    const entry: Entry = { queued, place: 'inFlight', wakeAtMs: 0 }
    this.#pods.set(key, entry)
    this.#counts.inFlight++
    this.#enter(entry, 'active', 'UnschedulablePodAdd')
  }

  /** A pod without a node changed: `event` names the change. */
  update(pod: Frozen<Pod>, event: ClusterEvent<'TargetPod'>): void {
    const entry = this.#pods.get(keyOf(pod))
    if (!entry || entry.queued.pod.metadata.uid !== pod.metadata.uid) {
      this.add(pod)
      return
    }
    entry.queued.pod = pod
    if (entry.place === 'inFlight') this.#log.add(event)
    else if (entry.place === 'unschedulable' || entry.place === 'gated') this.#consider(entry, event)
  }

  delete(key: string): void {
    const entry = this.#pods.get(key)
    if (!entry) return
    if (entry.place === 'inFlight') this.#log.end(entry)
    this.#leave(entry)
    this.#counts[entry.place]--
    this.#pods.delete(key)
  }

  /** Removes a deleted pod, unless a new pod has its name. */
  drop(queued: QueuedPod): void {
    if (this.#pods.get(queued.key)?.queued === queued) this.delete(queued.key)
  }

  /** No caller will pop again: leave no timer. */
  close(): void {
    this.#timer.cancel()
  }

  /** The next pod to try; waits for one. Undefined when aborted. */
  async pop(signal: AbortSignal): Promise<QueuedPod | undefined> {
    while (!signal.aborted) {
      const queued = this.tryPop()
      if (queued) return queued
      await new Promise<void>((resolve) => {
        const wake = () => {
          signal.removeEventListener('abort', wake)
          this.#waiter = undefined
          resolve()
        }
        this.#waiter = wake
        signal.addEventListener('abort', wake, { once: true })
      })
    }
    return undefined
  }

  tryPop(): QueuedPod | undefined {
    const entry = this.#popActive() ?? this.#popBackoff(this.#backoff)
    if (!entry) return undefined
    this.#move(entry, 'inFlight')
    entry.queued.attempts++
    this.#log.begin(entry)
    return entry.queued
  }

  /** The pod can no longer be refused: what happens from here on need not be kept for it. */
  settle(queued: QueuedPod): void {
    const entry = this.#pods.get(queued.key)
    if (entry?.queued === queued) this.#log.end(entry)
  }

  /** The try failed; without the name of any plugin: by an error. */
  failed(queued: QueuedPod, { refusedBy, pendingOn }: Failure): void {
    const entry = this.#pods.get(queued.key)
    if (entry?.queued !== queued || entry.place !== 'inFlight') return
    const events = this.#log.end(entry)
    queued.wasFlushed = false
    queued.refusedBy = refusedBy
    queued.pendingOn = pendingOn
    queued.sinceMs = this.#options.clock.now()
    // No plugin refused it: an error occurred, so only time helps.
    const isError = refusedBy.size === 0 && pendingOn.size === 0
    queued.consecutiveErrors = isError ? queued.consecutiveErrors + 1 : 0
    if (refusedBy.size > 0) queued.refusals++
    if (isError) {
      this.#backOff(entry, 'ScheduleAttemptFailure')
      return
    }
    let strategy: 'skip' | 'backoff' | 'now' = 'skip'
    for (const event of events) {
      const wanted = this.#strategy(entry, event)
      if (wanted !== 'skip') strategy = wanted
      if (wanted === 'now') break
    }
    if (strategy === 'now') this.#enter(entry, 'active', 'ScheduleAttemptFailure')
    else if (strategy === 'backoff') this.#backOff(entry, 'ScheduleAttemptFailure')
    else this.#park(entry, 'unschedulable', 'ScheduleAttemptFailure')
  }

  /** Something changed in the cluster: pods that it may help are tried again. */
  onEvent(event: ClusterEvent): void {
    this.#log.add(event)
    const seen = new Set<Entry>()
    for (const tables of this.#hints.values())
      for (const plugin of tables.interestedIn(event))
        for (const entry of [...(this.#waitingOn.get(plugin) ?? [])]) {
          if (seen.has(entry)) continue
          seen.add(entry)
          this.#consider(entry, event)
        }
  }

  /** To the active queue at once, whatever they wait for. */
  activate(keys: Iterable<string>): void {
    for (const key of keys) {
      const entry = this.#pods.get(key)
      if (entry && entry.place !== 'active' && entry.place !== 'inFlight') this.#enter(entry, 'active', 'ForceActivate')
    }
  }

  #consider(entry: Entry, event: ClusterEvent): void {
    const strategy = this.#strategy(entry, event)
    if (strategy === 'skip') return
    if (strategy === 'now') this.#enter(entry, 'active', eventLabel(event))
    else this.#backOff(entry, eventLabel(event))
  }

  #strategy(entry: Entry, event: ClusterEvent): 'skip' | 'backoff' | 'now' {
    const tables = this.#hints.get(this.#profileName(entry))
    if (!tables) return 'skip'
    return strategyFor(tables, entry.queued, event)
  }

  #profileName({ queued }: Entry): string {
    return queued.pod.spec.schedulerName ?? 'default-scheduler'
  }

  #popActive(): Entry | undefined {
    for (let entry = this.#active.pop(); entry; entry = this.#active.pop()) {
      // Entries of deleted pods stay in the heap until they reach its top.
      if (this.#pods.get(entry.queued.key) === entry && entry.place === 'active') return entry
    }
    return undefined
  }

  #popBackoff(heap: Heap<BackingOff>): Entry | undefined {
    for (let item = heap.pop(); item; item = heap.pop()) if (this.#isBackingOff(item)) return item.entry
    return undefined
  }

  #isBackingOff({ entry, wakeAtMs }: BackingOff): boolean {
    return this.#pods.get(entry.queued.key) === entry && entry.place === 'backoff' && entry.wakeAtMs === wakeAtMs
  }

  #move(entry: Entry, place: Place): void {
    this.#leave(entry)
    this.#counts[entry.place]--
    this.#counts[place]++
    entry.place = place
  }

  /** Out of the sets of those that wait for events. */
  #leave(entry: Entry): void {
    if (entry.place !== 'unschedulable' && entry.place !== 'gated') return
    this.#unschedulable.delete(entry.queued.key)
    for (const name of this.#waitsFor(entry)) if (this.#waitingOn.get(name)?.delete(entry)) this.#options.onWaiting?.(name, this.#profileName(entry), -1)
  }

  #waitsFor({ queued }: Entry): Iterable<string> {
    const refused = [...queued.refusedBy, ...queued.pendingOn]
    return queued.gatedBy === undefined ? refused : [queued.gatedBy, ...refused]
  }

  #park(entry: Entry, place: 'unschedulable' | 'gated', event: string): void {
    this.#move(entry, place)
    if (place === 'unschedulable') {
      entry.wakeAtMs = this.#options.clock.now() + maxInUnschedulableMs
      this.#unschedulable.set(entry.queued.key, entry)
      this.#timer.arm(entry.wakeAtMs)
    }
    for (const name of this.#waitsFor(entry)) {
      let waiting = this.#waitingOn.get(name)
      if (!waiting) {
        waiting = new Set()
        this.#waitingOn.set(name, waiting)
      }
      waiting.add(entry)
      this.#options.onWaiting?.(name, this.#profileName(entry), 1)
    }
    this.#options.onIncoming?.(place, event)
  }

  /** To the active queue or to back-off, unless a plugin holds the pod back. */
  #enter(entry: Entry, place: 'active' | 'backoff', event: string): void {
    const { queued } = entry
    const profile = this.#options.profiles.get(this.#profileName(entry))
    const gate = profile?.points.preEnqueue.find((plugin) => plugin.preEnqueue(queued.pod))
    if (gate) {
      this.#leave(entry)
      queued.gatedBy = gate.name
      this.#park(entry, 'gated', event)
      return
    }
    this.#move(entry, place)
    queued.gatedBy = undefined
    this.#options.onIncoming?.(place, event)
    if (place === 'active') {
      queued.sinceMs = this.#options.clock.now()
      this.#active.push(entry)
    } else {
      const heap = queued.consecutiveErrors > 0 ? this.#errorBackoff : this.#backoff
      heap.push({ entry, wakeAtMs: entry.wakeAtMs })
      this.#timer.arm(entry.wakeAtMs)
    }
    // A pod in back-off may be tried early when no other pod waits.
    this.#waiter?.()
  }

  /** Back-off counts from the failed try, doubling with each. */
  #backOff(entry: Entry, event: string): void {
    const { initialBackoffMs, maxBackoffMs, clock } = this.#options
    const { queued } = entry
    const tries = queued.consecutiveErrors > 0 ? queued.consecutiveErrors : queued.refusals
    const delayMs = tries === 0 ? 0 : Math.min(maxBackoffMs, initialBackoffMs * 2 ** (tries - 1))
    entry.wakeAtMs = queued.sinceMs + delayMs
    this.#enter(entry, entry.wakeAtMs <= clock.now() ? 'active' : 'backoff', event)
  }

  #wake(): void {
    const nowMs = this.#options.clock.now()
    for (const heap of [this.#backoff, this.#errorBackoff]) this.#wakeBackoff(heap, nowMs)
    for (const entry of this.#unschedulable.values()) {
      if (entry.wakeAtMs > nowMs) {
        this.#timer.arm(entry.wakeAtMs)
        break
      }
      entry.queued.wasFlushed = true
      this.#backOff(entry, 'UnschedulableTimeout')
    }
  }

  #wakeBackoff(heap: Heap<BackingOff>, nowMs: number): void {
    const early: BackingOff[] = []
    // Pods of the same second are ordered by priority, so all pods of the first second are compared.
    for (let item = heap.peek(); item; item = heap.peek()) {
      if (Math.floor(item.wakeAtMs / backoffWindowMs) > Math.floor(nowMs / backoffWindowMs)) {
        this.#timer.arm(item.wakeAtMs)
        break
      }
      heap.pop()
      if (!this.#isBackingOff(item)) continue
      if (item.wakeAtMs <= nowMs) this.#enter(item.entry, 'active', 'BackoffComplete')
      else early.push(item)
    }
    for (const item of early) {
      heap.push(item)
      this.#timer.arm(item.wakeAtMs)
    }
  }
}
