/** The first start of an API server (L3): tried until it succeeds, and waited for by others. */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'

const startRetryMs = 500

/** The end of the first start. */
export function latch(): { readonly started: Promise<void>; done(): void; isDone(): boolean } {
  let isDone = false
  let resolveStarted = () => {}
  const started = new Promise<void>((resolve) => {
    resolveStarted = resolve
  })
  return {
    started,
    isDone: () => isDone,
    done() {
      isDone = true
      resolveStarted()
    },
  }
}

/** Repeats work that fails, with a pause, until it succeeds or the signal aborts. */
export async function tryUntilDone(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work(signal)
      return
    } catch (error) {
      if (signal.aborted) return
      log.error(error, 'Starting up failed; trying again')
      await clock.sleep(startRetryMs, signal).catch(() => undefined)
    }
  }
}
