/**
 * Decides what becomes of a new event (L2): dropped as spam, counted on an earlier one, folded with similar ones, or written as it is.
 * Upstream: client-go/tools/record/events_cache.go (v1.36).
 */
import type { Event } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { createTokenBucket } from './workqueue/rateLimiter.ts'

export interface Correlated {
  readonly event: Event
  /** Strategic merge patch for the event that is there already; absent for a first one. */
  readonly patch?: Record<string, unknown> | undefined
  /** Tells what the server made of it. */
  seen(written: Frozen<Event>): void
}

const maxEntries = 4096
const similarLimit = 10
const similarWindowMs = 600_000
const spamBurst = 25
const spamQps = 1 / 300

interface Counted {
  count: number
  name: string
  namespace: string | undefined
  firstTimestamp: string | undefined
}

/** Returns the decision function; undefined means: drop. */
export function createEventCorrelator(clock: Clock): (event: Event) => Correlated | undefined {
  const buckets = new Map<string, ReturnType<typeof createSpamBucket>>()
  const similar = new Map<string, { readonly messages: Set<string>; lastMs: number }>()
  const counted = new Map<string, Counted>()

  return (original) => {
    const { involvedObject: on, source } = original
    const objectKey = [source?.component, source?.host, on.kind, on.namespace, on.name, on.uid, on.apiVersion].join('\n')
    if (!remember(buckets, objectKey, () => createSpamBucket(clock)).take()) return undefined

    const similarKey = [objectKey, on.fieldPath, original.type, original.reason, original.reportingComponent, original.reportingInstance].join('\n')
    const nowMs = clock.now()
    const group = remember(similar, similarKey, () => ({ messages: new Set<string>(), lastMs: nowMs }))
    if (nowMs - group.lastMs > similarWindowMs) group.messages.clear()
    group.lastMs = nowMs
    group.messages.add(original.message ?? '')
    const folded = group.messages.size >= similarLimit
    if (folded) group.messages.delete(group.messages.values().next().value ?? '')

    const key = folded ? similarKey : `${similarKey}\n${original.message}`
    const event: Event = folded ? { ...original, message: `(combined from similar events): ${original.message}` } : original
    const before = counted.get(key)
    const seen = (written: Frozen<Event>) => {
      const { name = '', namespace } = written.metadata
      counted.delete(key)
      remember(counted, key, () => ({ count: written.count ?? 1, name, namespace, firstTimestamp: written.firstTimestamp }))
    }
    if (!before) return { event, seen }
    const count = before.count + 1
    const repeated = {
      ...event,
      metadata: { ...event.metadata, name: before.name, namespace: before.namespace },
      count,
      firstTimestamp: before.firstTimestamp,
    }
    return { event: repeated, patch: { count, lastTimestamp: event.lastTimestamp, message: event.message }, seen }
  }
}

function createSpamBucket(clock: Clock): { take(): boolean } {
  let bucket = createTokenBucket(clock, spamQps, spamBurst)
  let refusedUntilMs = 0
  return {
    take: () => {
      // A refused take must not push the next one further away.
      if (clock.monotonicMs() < refusedUntilMs) return false
      const waitMs = bucket.takeMs()
      if (waitMs === 0) return true
      refusedUntilMs = clock.monotonicMs() + waitMs
      bucket = createTokenBucket(clock, spamQps, 1)
      return false
    },
  }
}

/** Gets or makes an entry, and forgets the oldest when there are too many. */
function remember<V>(map: Map<string, V>, key: string, make: () => V): V {
  const there = map.get(key)
  if (there !== undefined) return there
  const oldest = map.size >= maxEntries ? map.keys().next() : undefined
  if (oldest && !oldest.done) map.delete(oldest.value)
  const made = make()
  map.set(key, made)
  return made
}
