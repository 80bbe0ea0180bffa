/**
 * What a controller has asked for and not yet seen in its cache (L2): until it has, a sync must not count pods. Deletions are known by the
 * pod's key, so that one seen twice counts once. Upstream: pkg/controller/controller_utils.go, UIDTrackingControllerExpectations (v1.36).
 */
import type { Clock } from '#base/clock'

/** After this long without the awaited events the cache is believed again. */
export const expectationsTimeoutMs = 5 * 60_000

export interface Expectations {
  /** True when nothing is awaited, it never was, or the wait took too long. */
  satisfied(controller: string): boolean
  expectCreations(controller: string, count: number): void
  expectDeletions(controller: string, podKeys: readonly string[]): void
  /** Both at once. */
  expect(controller: string, creations: number, podKeys: readonly string[]): void
  creationObserved(controller: string): void
  /** Creations that failed will not be seen. */
  creationsFailed(controller: string, count: number): void
  deletionObserved(controller: string, podKey: string): void
  forget(controller: string): void
}

interface Awaited {
  creations: number
  readonly deletions: Set<string>
  readonly sinceMs: number
}

export function createExpectations(clock: Clock): Expectations {
  const awaited = new Map<string, Awaited>()
  const lower = (controller: string, count: number) => {
    const entry = awaited.get(controller)
    if (entry) entry.creations -= count
  }
  const expect = (controller: string, creations: number, podKeys: readonly string[]) =>
    void awaited.set(controller, { creations, deletions: new Set(podKeys), sinceMs: clock.monotonicMs() })
  return {
    satisfied: (controller) => {
      const entry = awaited.get(controller)
      if (!entry || (entry.creations <= 0 && entry.deletions.size === 0)) return true
      return clock.monotonicMs() - entry.sinceMs > expectationsTimeoutMs
    },
    expect,
    expectCreations: (controller, count) => expect(controller, count, []),
    expectDeletions: (controller, podKeys) => expect(controller, 0, podKeys),
    creationObserved: (controller) => lower(controller, 1),
    creationsFailed: lower,
    deletionObserved: (controller, podKey) => void awaited.get(controller)?.deletions.delete(podKey),
    forget: (controller) => void awaited.delete(controller),
  }
}
