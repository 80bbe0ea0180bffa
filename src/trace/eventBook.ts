/** What components did about objects (L2), in a ring of bounded size. A node's agent keeps one for all its pods. */
import type { ObjectEvent } from '#api/debug/traces'
import { BoundedRing } from './boundedRing.ts'
import type { ObjectTrace } from './objectTrace.ts'
import type { TraceClock } from './traceClock.ts'

const mostEvents = 16_384

/** Keeps the newest events of all objects. */
export class EventBook implements ObjectTrace {
  readonly #clock: TraceClock
  readonly #events: BoundedRing<ObjectEvent>

  constructor(clock: TraceClock, mostBytes: number) {
    this.#clock = clock
    this.#events = new BoundedRing(mostEvents, mostBytes)
  }

  follows(): boolean {
    return true
  }

  now(): number {
    return this.#clock.now()
  }

  note(event: ObjectEvent): void {
    this.#events.push(event, JSON.stringify(event).length)
  }

  /** Events of these objects, or of all, by time. */
  events(objects?: ReadonlySet<string>): ObjectEvent[] {
    return this.#eventsThat(({ object }) => !objects || objects.has(object))
  }

  /** Events that ended after this time, by time. */
  eventsSince(ms: number): ObjectEvent[] {
    return this.#eventsThat(({ atMs, durationMs }) => atMs + durationMs > ms)
  }

  #eventsThat(fits: (event: ObjectEvent) => boolean): ObjectEvent[] {
    const found: ObjectEvent[] = []
    for (const event of this.#events.newest()) if (fits(event)) found.push(event)
    return found.sort((one, other) => one.atMs - other.atMs)
  }
}
