/** The machine's own clock (L5): the one place where real time enters. */
import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#base/clock'

/** The platform takes no longer ones (24 days), and would fire at once. */
export const longestTimerMs = 2 ** 31 - 1

export function createRealClock(): Clock {
  return {
    now: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep: async (ms, signal) => {
      // Any number of waits may listen to one signal; Node warns from the eleventh on.
      if (signal) setMaxListeners(0, signal)
      try {
        await delay(Math.min(ms, longestTimerMs), undefined, signal ? { signal } : {})
      } catch (error) {
        throw signal?.reason ?? error
      }
    },
    timer: (ms, fn) => {
      const handle = setTimeout(fn, Math.min(ms, longestTimerMs))
      return { cancel: () => clearTimeout(handle) }
    },
    turn: () => new Promise((resolve) => setImmediate(resolve)),
  }
}
