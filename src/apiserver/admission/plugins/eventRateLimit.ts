/**
 * Limits the rate of writes of events (L3): on the server, in a namespace, by a user, or from a source about an object. Off by default.
 * Upstream: plugin/pkg/admission/eventratelimit.
 */
import type { Event } from '#api/gen/types/core.v1'
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import { createTokenBucket, type TokenBucket } from '#client/workqueue/rateLimiter'
import { aggregateReasons } from '../../core/reasons.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'

export const eventLimitTypes = ['Namespace', 'Server', 'SourceAndObject', 'User'] as const

export interface EventLimit {
  readonly type: (typeof eventLimitTypes)[number]
  readonly qps: number
  readonly burst: number
  /** How many buckets are kept; 0: 4096. */
  readonly cacheSize: number
}

const defaultCacheSize = 4096

export function eventRateLimit(clock: Clock, limits: readonly EventLimit[]): AdmissionPlugin {
  const enforcers = limits.map(({ type, qps, burst, cacheSize }) => {
    const buckets = new LruCache<string, TokenBucket>(type === 'Server' ? 1 : cacheSize || defaultCacheSize)
    return (attributes: AdmissionAttributes): string | undefined => {
      const key = keyOf[type](attributes)
      let bucket = buckets.get(key)
      if (!bucket) {
        bucket = createTokenBucket(clock, qps, burst)
        buckets.set(key, bucket)
      }
      return bucket.tryTake() ? undefined : `limit reached on type ${type} for key ${key}`
    }
  })
  return {
    name: 'EventRateLimit',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    validate(attributes) {
      const { kind, dryRun } = attributes
      // As upstream, events of the group events.k8s.io are not limited.
      if (dryRun || kind.kind !== 'Event' || kind.group !== '') return
      // Every limit counts the event, also when another has refused it.
      const refusals = enforcers.flatMap((accept) => accept(attributes) ?? [])
      if (refusals.length > 0) throw new StatusError('TooManyRequests', `Too many requests: ${aggregateReasons(refusals)}`)
    },
  }
}

const keyOf: Readonly<Record<EventLimit['type'], (attributes: AdmissionAttributes) => string>> = {
  Server: () => '',
  Namespace: ({ namespace }) => namespace,
  User: ({ user }) => user.name,
  SourceAndObject({ object }) {
    const { source, involvedObject = {} } = object as unknown as Partial<Event>
    const { kind, namespace, name, uid, apiVersion } = involvedObject as NonNullable<Event['involvedObject']>
    return [source?.component, source?.host, kind, namespace, name, uid, apiVersion].map((part) => part ?? '').join('')
  },
}
