/** Waits for a condition that nothing announces: asks again after some milliseconds of real time, and fails after a deadline. For tests only. */

import { pollPauseMs } from './pollPause.ts'

const [shortestPauseMs, longestPauseMs] = [5, 50]

export interface UntilOptions {
  readonly timeoutMs?: number
  /** Describes the state in the error. */
  readonly state?: () => string
}

/** Returns the first value of `condition` that is neither undefined nor false. @param what a sentence that is true then, for the error */
export async function until<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  { timeoutMs = 20_000, state }: UntilOptions = {},
): Promise<T> {
  const startedMs = performance.now()
  const deadlineMs = startedMs + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadlineMs) throw new Error(`timed out waiting until ${what}${state ? `: ${state()}` : ''}`)
    await new Promise((resolve) => setTimeout(resolve, pollPauseMs(performance.now() - startedMs, shortestPauseMs, longestPauseMs)))
  }
}
