/** The machine's own clock (L5): the one place where real time enters. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#base/clock'

export function createRealClock(): Clock {
  return {
    now: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep: async (ms, signal) => {
      try {
        await delay(ms, undefined, signal ? { signal } : {})
      } catch (error) {
        throw signal?.reason ?? error
      }
    },
    timer: (ms, fn) => {
      const handle = setTimeout(fn, ms)
      return { cancel: () => clearTimeout(handle) }
    },
  }
}
