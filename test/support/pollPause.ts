/**
 * The pause between two questions of a test that polls. It grows with the wait: a test that asks without rest takes the processor from what it waits for, and from the
 * tests that run at the same time.
 */

/** The share of the wait so far. What a test waits for is seen so much later at most. */
const share = 1 / 8

/** @returns milliseconds, between `shortestMs` at the beginning of the wait and `longestMs` */
export function pollPauseMs(waitedMs: number, shortestMs: number, longestMs: number): number {
  return Math.min(longestMs, Math.max(shortestMs, waitedMs * share))
}
