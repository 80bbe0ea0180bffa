/**
 * What happened while pods were being tried (L3), kept once for all of them: each that fails asks whether something helpful happened meanwhile.
 * Upstream: backend/queue/active_queue.go inFlightEvents.
 */
import { type ClusterEvent, eventLabel } from './framework/clusterEvent.ts'

export class EventLog {
  /** Pod in flight → number of the first event after its start. In order of their starts, so the first has the lowest. */
  readonly #startedAt = new Map<object, number>()
  #events: ClusterEvent[] = []
  /** The number of the first event kept. */
  #base = 0
  /** Counts the kept entries: pods in flight as `PodPopped`, events by their labels. */
  readonly #onKept: ((label: string, by: number) => void) | undefined

  constructor(onKept?: (label: string, by: number) => void) {
    this.#onKept = onKept
  }

  begin(inFlight: object): void {
    if (!this.#startedAt.has(inFlight)) this.#onKept?.('PodPopped', 1)
    this.#startedAt.set(inFlight, this.#base + this.#events.length)
  }

  add(event: ClusterEvent): void {
    if (this.#startedAt.size === 0) return
    this.#events.push(event)
    this.#onKept?.(eventLabel(event), 1)
  }

  /** What happened since begin; nothing when it was not in flight. */
  end(inFlight: object): readonly ClusterEvent[] {
    const from = this.#startedAt.get(inFlight)
    if (from === undefined) return []
    const since = this.#events.slice(from - this.#base)
    this.#startedAt.delete(inFlight)
    this.#onKept?.('PodPopped', -1)
    this.#forgetOld()
    return since
  }

  /** Rarely, so that forgetting costs little for each event. */
  #forgetOld(): void {
    const [oldest] = this.#startedAt.values()
    if (oldest === undefined) {
      this.#base += this.#events.length
      if (this.#events.length > 0) this.#drop(this.#events.length)
      return
    }
    const unneeded = oldest - this.#base
    if (unneeded < 64 || unneeded * 2 < this.#events.length) return
    this.#drop(unneeded)
    this.#base = oldest
  }

  #drop(count: number): void {
    if (this.#onKept) for (let i = 0; i < count; i++) this.#onKept(eventLabel(this.#events[i] as ClusterEvent), -1)
    this.#events = count === this.#events.length ? [] : this.#events.slice(count)
  }
}
