/**
 * Decides when a pod is synced again (L3, pure): regularly after success, sooner after a failure, and not before a crash loop's back-off ends. Delays are
 * spread at random, so that pods that fail together do not retry together. Upstream: kubelet/pod_workers.go completeWork (v1.36).
 */
import type { Random } from '#base/random'

/** Upstream: backOffPeriod. */
export const errorBackOffMs = 10_000
/** The network may be ready soon. Upstream: backOffOnTransientErrorPeriod. */
export const networkBackOffMs = 1_000
/** A delay is up to this fraction longer. */
const jitterFactor = 0.5

export function jittered(delayMs: number, random: Random): number {
  return delayMs * (1 + random.next() * jitterFactor)
}

/**
 * The time until the next sync.
 * @param backOffMs until what failed may be tried again; undefined: nothing failed
 * @param syncFrequencyMs the longest time between syncs; 0: pods are synced only when something happens
 */
export function resyncInMs(backOffMs: number | undefined, syncFrequencyMs: number, random: Random): number | undefined {
  if (backOffMs === undefined) return syncFrequencyMs > 0 ? jittered(syncFrequencyMs, random) : undefined
  const longest = syncFrequencyMs > 0 ? syncFrequencyMs : Number.POSITIVE_INFINITY
  return jittered(Math.min(Math.max(backOffMs, 0), longest), random)
}
