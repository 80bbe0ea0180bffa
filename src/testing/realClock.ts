/** The machine's clock, for tests that use real sockets. */
import type { Clock } from '#base/clock'
import { createRealClock, longestTimerMs } from '#main/realClock'

export const realClock: Clock = {
  ...createRealClock(),
  timer: (ms, fn) => {
    const timeout = setTimeout(fn, Math.min(ms, longestTimerMs))
    // Tests end when their work is done, not when the last timer of a watch would fire.
    timeout.unref()
    return { cancel: () => clearTimeout(timeout) }
  },
}
