/**
 * Decides what becomes of a new event (L2): dropped as spam, counted on an earlier one, folded with similar ones, or written as it is.
 * Upstream: client-go/tools/record/events_cache.go (v1.36).
 */
import type { Event } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import { createTokenBucket, type TokenBucket } from './workqueue/rateLimiter.ts'

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
  readonly count: number
  readonly name: string
  readonly namespace: string | undefined
  readonly firstTimestamp: string | undefined
}

interface SimilarEvents {
  messages: Set<string>
  lastMs: number
}

/**
 * Returns the decision function; undefined means: drop. Dropped events are counted, too, so the next write has the right count.
 * @see client-go/tools/record EventCorrelate
 */
export function createEventCorrelator(clock: Clock): (event: Event) => Correlated | undefined {
  const buckets = new LruCache<string, TokenBucket>(maxEntries)
  const similar = new LruCache<string, SimilarEvents>(maxEntries)
  const counted = new LruCache<string, Counted>(maxEntries)

  return (original) => {
    const { event, key } = combine(similar, original, clock.now())
    const { event: numbered, patch } = count(counted, key, event)
    if (!getOrMake(buckets, sourceAndObject(original).join('\n'), () => createTokenBucket(clock, spamQps, spamBurst)).tryTake()) return undefined
    return { event: numbered, patch, seen: (written) => counted.set(key, countedFrom(written)) }
  }
}

/** What upstream's spam key is made of, and where its other keys begin. */
function sourceAndObject({ source, involvedObject: on }: Event): (string | undefined)[] {
  return [source?.component, source?.host, on.kind, on.namespace, on.name, on.uid, on.apiVersion]
}

/** From the tenth message on, events that differ in nothing else (the container they are about aside) share one key. */
function combine(similar: LruCache<string, SimilarEvents>, event: Event, nowMs: number): { event: Event; key: string } {
  const message = event.message ?? ''
  const similarKey = [...sourceAndObject(event), event.type, event.reason, event.reportingComponent, event.reportingInstance].join('\n')
  const group = getOrMake(similar, similarKey, () => ({ messages: new Set(), lastMs: nowMs }))
  if (nowMs - group.lastMs > similarWindowMs) group.messages.clear()
  group.lastMs = nowMs
  group.messages.add(message)
  if (group.messages.size < similarLimit) {
    return { event, key: [...sourceAndObject(event), event.involvedObject.fieldPath, event.type, event.reason, message].join('\n') }
  }
  group.messages.delete(group.messages.values().next().value ?? '')
  return { event: { ...event, message: `(combined from similar events): ${message}` }, key: similarKey }
}

/** The event as it is to be written, and the patch when an earlier one is there to be counted up. */
function count(counted: LruCache<string, Counted>, key: string, event: Event): { event: Event; patch?: Record<string, unknown> } {
  const before = counted.get(key)
  if (!before) {
    counted.set(key, countedFrom(event))
    return { event }
  }
  const { name, namespace, firstTimestamp } = before
  const next = before.count + 1
  counted.set(key, { ...before, count: next })
  const repeated = { ...event, metadata: { ...event.metadata, name, namespace }, count: next, firstTimestamp }
  return { event: repeated, patch: { count: next, lastTimestamp: event.lastTimestamp, message: event.message } }
}

function countedFrom({ metadata, count: times, firstTimestamp }: Frozen<Event>): Counted {
  return { count: times ?? 1, name: metadata.name ?? '', namespace: metadata.namespace, firstTimestamp }
}

function getOrMake<V extends object>(cache: LruCache<string, V>, key: string, make: () => V): V {
  const there = cache.get(key)
  if (there) return there
  const made = make()
  cache.set(key, made)
  return made
}
