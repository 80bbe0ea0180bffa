/**
 * The pods that wait for a node (L3): active ones in order of priority, those that back off after a failure, and those that nothing can help
 * until something in the cluster changes. Upstream: pkg/scheduler/backend/queue/scheduling_queue.go.
 *
 * A pod that failed goes to `unschedulable`, unless a helpful event came while it was being tried: then straight to back-off. An event moves
 * only those pods whose refusing plugins say that it may help.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock, Timer } from '#base/clock'
import { Heap } from '#base/heap'
import type { ClusterEvent, SchedulerPlugin } from './framework/plugin.ts'

export interface QueuedPod {
  pod: Frozen<Pod>
  readonly key: string
  /** When it (last) became active. */
  sinceMs: number
  readonly firstSeenMs: number
  attempts: number
  refusedBy: ReadonlySet<string>
}

export interface SchedulingQueueOptions {
  readonly clock: Clock
  readonly plugins: readonly SchedulerPlugin[]
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
}

type Place = 'active' | 'backoff' | 'unschedulable' | 'gated' | 'inFlight'

interface Entry {
  readonly queued: QueuedPod
  place: Place
  wakeAtMs: number
}

/** Pods that no event freed are tried again after this long, in case a hint was wrong. */
const maxInUnschedulableMs = 300_000

export class SchedulingQueue {
  readonly #options: SchedulingQueueOptions
  readonly #pods = new Map<string, Entry>()
  readonly #counts: Record<Place, number> = { active: 0, backoff: 0, unschedulable: 0, gated: 0, inFlight: 0 }
  readonly #active: Heap<QueuedPod>
  /** The pods that events may free, so that an event does not walk through all that wait. */
  readonly #unschedulable = new Set<string>()
  readonly #eventsWhileInFlight = new Map<string, ClusterEvent[]>()
  readonly #plugins: ReadonlyMap<string, SchedulerPlugin>
  #timer: { atMs: number; timer: Timer } | undefined
  #waiter: (() => void) | undefined

  constructor(options: SchedulingQueueOptions) {
    this.#options = options
    this.#plugins = new Map(options.plugins.map((plugin) => [plugin.name, plugin]))
    const order = options.plugins.find((plugin) => plugin.less)?.less
    this.#active = new Heap((a, b) => (order ? order(a, b) : a.sinceMs - b.sinceMs))
  }

  /** Pods by where they are: the labels of scheduler_pending_pods. */
  counts(): Readonly<Record<Place, number>> {
    return this.#counts
  }

  /** A pod without a node appeared or changed. */
  set(pod: Frozen<Pod>): void {
    const key = keyOf(pod)
    const there = this.#pods.get(key)
    const nowMs = this.#options.clock.now()
    if (!there) {
      this.#enter({ pod, key, sinceMs: nowMs, firstSeenMs: nowMs, attempts: 0, refusedBy: new Set() })
      return
    }
    const old = there.queued.pod
    there.queued.pod = pod
    if (there.place === 'gated') this.#enter(there.queued)
    else if (there.place === 'unschedulable' && isScheduleRelevant(old, pod)) this.#moveToBackoffOrActive(there.queued)
  }

  delete(key: string): void {
    const there = this.#pods.get(key)
    if (!there) return
    this.#counts[there.place]--
    this.#pods.delete(key)
    this.#unschedulable.delete(key)
    this.#eventsWhileInFlight.delete(key)
  }

  /** Forgets a pod that is gone, unless another of its name has come. */
  drop(queued: QueuedPod): void {
    if (this.#pods.get(queued.key)?.queued === queued) this.delete(queued.key)
  }

  /** Nobody will pop again: no timer stays behind. */
  close(): void {
    this.#timer?.timer.cancel()
    this.#timer = undefined
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
    for (let queued = this.#active.pop(); queued; queued = this.#active.pop()) {
      const there = this.#pods.get(queued.key)
      // Entries of deleted or moved pods stay in the heap until they come up.
      if (there?.queued !== queued || there.place !== 'active') continue
      this.#move(there, 'inFlight')
      queued.attempts++
      this.#eventsWhileInFlight.set(queued.key, [])
      return queued
    }
    return undefined
  }

  /** The pod has a node now. */
  done(key: string): void {
    if (this.#pods.get(key)?.place === 'inFlight') this.delete(key)
  }

  /** The try failed: `refusedBy` empty means an error, after which only time helps. */
  failed(queued: QueuedPod, refusedBy: ReadonlySet<string>): void {
    const events = this.#eventsWhileInFlight.get(queued.key) ?? []
    this.#eventsWhileInFlight.delete(queued.key)
    const there = this.#pods.get(queued.key)
    if (there?.queued !== queued) return
    queued.refusedBy = refusedBy
    queued.sinceMs = this.#options.clock.now()
    if (refusedBy.size === 0 || events.some((event) => this.#mayHelp(event, queued))) {
      this.#backOff(there)
      return
    }
    this.#move(there, 'unschedulable')
    there.wakeAtMs = this.#options.clock.now() + maxInUnschedulableMs
    this.#armTimer(there.wakeAtMs)
  }

  /** Something changed in the cluster: pods that it may help are tried again. */
  onEvent(event: ClusterEvent): void {
    for (const events of this.#eventsWhileInFlight.values()) events.push(event)
    for (const key of [...this.#unschedulable]) {
      const queued = this.#pods.get(key)?.queued
      if (queued && this.#mayHelp(event, queued)) this.#moveToBackoffOrActive(queued)
    }
  }

  #mayHelp(event: ClusterEvent, queued: QueuedPod): boolean {
    for (const name of queued.refusedBy) if (this.#plugins.get(name)?.requeueOn?.(event, queued.pod)) return true
    return false
  }

  #move(there: Entry, place: Place): void {
    this.#counts[there.place]--
    this.#counts[place]++
    there.place = place
    if (place === 'unschedulable') this.#unschedulable.add(there.queued.key)
    else this.#unschedulable.delete(there.queued.key)
  }

  /** To the active queue, unless a plugin holds it back. */
  #enter(queued: QueuedPod): void {
    const held = this.#options.plugins.some((plugin) => plugin.preEnqueue?.(queued.pod))
    const place = held ? 'gated' : 'active'
    const there = this.#pods.get(queued.key)
    if (there) this.#move(there, place)
    else {
      this.#pods.set(queued.key, { queued, place, wakeAtMs: 0 })
      this.#counts[place]++
    }
    if (held) return
    queued.sinceMs = this.#options.clock.now()
    this.#active.push(queued)
    this.#waiter?.()
  }

  #moveToBackoffOrActive(queued: QueuedPod): void {
    const there = this.#pods.get(queued.key)
    if (there) this.#backOff(there)
  }

  /** Back-off counts from the failed try, doubling with each. */
  #backOff(there: Entry): void {
    const { initialBackoffMs, maxBackoffMs, clock } = this.#options
    const { queued } = there
    there.wakeAtMs = queued.sinceMs + Math.min(maxBackoffMs, initialBackoffMs * 2 ** Math.max(0, queued.attempts - 1))
    if (there.wakeAtMs <= clock.now()) {
      this.#enter(queued)
      return
    }
    this.#move(there, 'backoff')
    this.#armTimer(there.wakeAtMs)
  }

  /** One timer for the earliest wake-up. */
  #armTimer(atMs: number): void {
    if (this.#timer && this.#timer.atMs <= atMs) return
    this.#timer?.timer.cancel()
    this.#timer = { atMs, timer: this.#options.clock.timer(atMs - this.#options.clock.now(), () => this.#wake()) }
  }

  #wake(): void {
    this.#timer = undefined
    const nowMs = this.#options.clock.now()
    let next: number | undefined
    for (const { queued, place, wakeAtMs } of [...this.#pods.values()]) {
      if (place !== 'backoff' && place !== 'unschedulable') continue
      if (wakeAtMs <= nowMs) this.#enter(queued)
      else if (next === undefined || wakeAtMs < next) next = wakeAtMs
    }
    if (next !== undefined) this.#armTimer(next)
  }
}

/** Status changes of a waiting pod, our own condition among them, are no reason to try again. */
function isScheduleRelevant(old: Frozen<Pod>, pod: Frozen<Pod>): boolean {
  return (
    old.metadata.generation !== pod.metadata.generation ||
    JSON.stringify(old.metadata.labels) !== JSON.stringify(pod.metadata.labels) ||
    JSON.stringify(old.spec) !== JSON.stringify(pod.spec)
  )
}
