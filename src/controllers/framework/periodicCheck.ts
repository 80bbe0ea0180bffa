/**
 * A periodic check that skips the turns at which it cannot find anything (L3): it returns when time alone can change its result, and changed() reports
 * everything else. Turns stay one period apart, so that a result is found at the same moment as without skipping.
 */
import type { Timer } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { ControllerContext } from './controller.ts'

export interface PeriodicCheckOptions {
  /** Names it in the log. */
  readonly name: string
  readonly periodMs: number
  /**
   * @returns the milliseconds until time alone can change the result: 0 for the next turn, Infinity for never. After a failure the next turn is not
   * skipped either.
   */
  check(signal: AbortSignal): Promise<number>
}

export interface PeriodicCheck {
  /** Something may have changed: the next turn is not skipped. */
  changed(): void
  /** Checks at once and then at each turn, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

export function createPeriodicCheck({ clock, log }: ControllerContext, { name, periodMs, check }: PeriodicCheckOptions): PeriodicCheck {
  /** The earliest time at which a check can find something. */
  let wantedMs = Number.POSITIVE_INFINITY
  let arm = () => {}

  function want(ms: number): void {
    if (ms >= wantedMs) return
    wantedMs = ms
    arm()
  }

  async function checkOnce(signal: AbortSignal): Promise<number> {
    try {
      return await check(signal)
    } catch (error) {
      if (!signal.aborted) log.warn('A periodic task failed', { task: name, error: messageOf(error) })
      return 0
    }
  }

  /** Until the first turn from `wantedMs` on. */
  function nextTurn(signal: AbortSignal): Promise<void> {
    const lastMs = clock.monotonicMs()
    return new Promise((resolve) => {
      let timer: Timer | undefined
      const done = () => {
        arm = () => {}
        timer?.cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      arm = () => {
        timer?.cancel()
        if (wantedMs === Number.POSITIVE_INFINITY) return
        const turns = Math.max(1, Math.ceil((wantedMs - lastMs) / periodMs))
        timer = clock.timer(lastMs + turns * periodMs - clock.monotonicMs(), done)
      }
      signal.addEventListener('abort', done, { once: true })
      if (signal.aborted) done()
      else arm()
    })
  }

  return {
    changed: () => want(clock.monotonicMs()),
    async run(signal) {
      while (!signal.aborted) {
        wantedMs = Number.POSITIVE_INFINITY
        const inMs = await checkOnce(signal)
        want(clock.monotonicMs() + inMs)
        await nextTurn(signal)
      }
    },
  }
}
