/**
 * Growing waits with jitter that shrink back after quiet (L2). Upstream: apimachinery/pkg/util/wait/backoff.go, DelayFn with reset (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  readonly factor: number
  /** 1 means: up to twice as long. */
  readonly jitter: number
  /** After this long without a failure the next wait is the first again. */
  readonly resetAfterMs: number
}

/** A reflector's between two attempts to list and watch. */
export const reflectorBackoff: BackoffOptions = { initialMs: 800, maxMs: 30_000, factor: 2, jitter: 1, resetAfterMs: 120_000 }

/** Returns a function that gives the next wait in milliseconds. */
export function createBackoff(clock: Clock, random: Random, options: BackoffOptions): () => number {
  let baseMs = options.initialMs
  let lastMs = clock.monotonicMs()
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - lastMs > options.resetAfterMs) baseMs = options.initialMs
    lastMs = nowMs
    const waitMs = baseMs * (1 + options.jitter * random.next())
    baseMs = Math.min(baseMs * options.factor, options.maxMs)
    return waitMs
  }
}
