/** The platform's time, for tests that use real sockets. */
import type { Clock } from '#base/clock'

export const realClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const onAbort = () => {
        clearTimeout(timeout)
        reject(signal?.reason)
      }
      const timeout = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }, ms)
      signal?.addEventListener('abort', onAbort, { once: true })
    }),
  timer: (ms, fn) => {
    const timeout = setTimeout(fn, ms)
    // Tests end when their work is done, not when the last timer of a watch would fire.
    timeout.unref()
    return { cancel: () => clearTimeout(timeout) }
  },
}
