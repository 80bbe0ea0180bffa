/**
 * How long an item that failed waits before it is tried again (L2). Upstream: client-go/util/workqueue/default_rate_limiters.go (v1.36).
 */

import type { Clock } from '#base/clock'
import { greatest } from '#base/extremes'

export interface RateLimiter<T> {
  /** Milliseconds to wait now; counts as a failure of the item. */
  when(item: T): number
  forget(item: T): void
  numRequeues(item: T): number
}

/** Per item: baseMs, doubled with each failure, up to maxMs. */
export function itemExponentialFailureRateLimiter<T>(baseMs: number, maxMs: number): RateLimiter<T> {
  const failures = new Map<T, number>()
  return {
    when: (item) => {
      const failed = failures.get(item) ?? 0
      failures.set(item, failed + 1)
      return Math.min(baseMs * 2 ** failed, maxMs)
    },
    forget: (item) => void failures.delete(item),
    numRequeues: (item) => failures.get(item) ?? 0,
  }
}

export interface TokenBucket {
  /** Takes a token, now or later: milliseconds until its turn. */
  takeMs(): number
  /** Takes a token only when one is there. */
  tryTake(): boolean
}

/** A token bucket: `burst` at once, then `qps` a second. Each takeMs reserves its turn, so waits add up. */
export function createTokenBucket(clock: Clock, qps: number, burst: number): TokenBucket {
  let tokens = burst
  let atMs = clock.monotonicMs()
  const refill = () => {
    const nowMs = clock.monotonicMs()
    tokens = Math.min(burst, tokens + ((nowMs - atMs) * qps) / 1000)
    atMs = nowMs
  }
  return {
    takeMs: () => {
      refill()
      tokens--
      return tokens >= 0 ? 0 : (-tokens * 1000) / qps
    },
    tryTake: () => {
      refill()
      if (tokens < 1) return false
      tokens--
      return true
    },
  }
}

/** All items together. */
export function bucketRateLimiter<T>(clock: Clock, qps: number, burst: number): RateLimiter<T> {
  const bucket = createTokenBucket(clock, qps, burst)
  return { when: () => bucket.takeMs(), forget: () => {}, numRequeues: () => 0 }
}

/** Per item: fastMs for the first `maxFastAttempts` failures, then slowMs. */
export function itemFastSlowRateLimiter<T>(fastMs: number, slowMs: number, maxFastAttempts: number): RateLimiter<T> {
  const failures = new Map<T, number>()
  return {
    when: (item) => {
      const failed = (failures.get(item) ?? 0) + 1
      failures.set(item, failed)
      return failed <= maxFastAttempts ? fastMs : slowMs
    },
    forget: (item) => void failures.delete(item),
    numRequeues: (item) => failures.get(item) ?? 0,
  }
}

/** Another limiter's waits, cut off at maxMs. */
export function withMaxWaitRateLimiter<T>(limiter: RateLimiter<T>, maxMs: number): RateLimiter<T> {
  return { when: (item) => Math.min(limiter.when(item), maxMs), forget: limiter.forget, numRequeues: limiter.numRequeues }
}

/** The longest wait of several limiters. */
export function maxOfRateLimiter<T>(...limiters: readonly RateLimiter<T>[]): RateLimiter<T> {
  return {
    when: (item) => greatest(limiters.map((limiter) => limiter.when(item))),
    forget: (item) => {
      for (const limiter of limiters) limiter.forget(item)
    },
    numRequeues: (item) => greatest(limiters.map((limiter) => limiter.numRequeues(item))),
  }
}

/** What controllers use: 5 ms to 1000 s per item, and 10 a second with a burst of 100 over all. */
export function defaultControllerRateLimiter<T>(clock: Clock): RateLimiter<T> {
  return maxOfRateLimiter(itemExponentialFailureRateLimiter<T>(5, 1_000_000), bucketRateLimiter<T>(clock, 10, 100))
}
