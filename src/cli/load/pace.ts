/** When operations begin (L4): each of them at its own rate, with a bound of those that are under way. */
import type { Clock } from '#base/clock'

export interface Pace {
  /** Waits for the next time and for a free place, then begins the work, which handles its own failures; rejects when the signal aborts. */
  next(work: () => Promise<void>): Promise<void>
  /** Resolves when all that began is done. */
  done(): Promise<void>
  /** Operations that began more than a second later than they should have. */
  readonly late: number
}

const lateMs = 1_000

/**
 * @param perSecond undefined: as fast as places become free
 * @param places operations that may be under way at the same time
 */
export function createPace(clock: Clock, perSecond: number | undefined, places: number, signal: AbortSignal): Pace {
  const startedMs = clock.monotonicMs()
  const running = new Set<Promise<void>>()
  let begun = 0
  let late = 0
  return {
    next: async (work) => {
      const dueMs = perSecond === undefined ? undefined : startedMs + (begun++ * 1_000) / perSecond
      const waitMs = dueMs === undefined ? 0 : dueMs - clock.monotonicMs()
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      while (running.size >= places) await Promise.race(running)
      signal.throwIfAborted()
      if (dueMs !== undefined && clock.monotonicMs() - dueMs > lateMs) late++
      const done = work().finally(() => running.delete(done))
      running.add(done)
    },
    done: async () => {
      await Promise.all(running)
    },
    get late() {
      return late
    },
  }
}
