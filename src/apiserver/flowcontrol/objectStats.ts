/**
 * How many objects of a resource there are and how large they are (L3): the count is the cache's, the size is sampled from a few of them, again
 * after a minute. Upstream: storage metrics feeding flowcontrol/request/object_count_tracker.go.
 */
import type { Clock } from '#base/clock'
import type { RequestInfo } from '../core/request.ts'
import type { Registry } from '../registry/registry.ts'
import { everything } from '../registry/selection.ts'
import type { WatchCache } from '../registry/watchCache.ts'
import type { ObjectStats } from './workEstimate.ts'

const freshMs = 60_000
const sampleSize = 32

export function createObjectStats(registry: Pick<Registry, 'served'>, clock: Clock): (info: RequestInfo) => ObjectStats | undefined {
  const sizes = new WeakMap<WatchCache, { readonly atMs: number; readonly averageBytes: number }>()
  const averageBytes = (cache: WatchCache): number => {
    const nowMs = clock.monotonicMs()
    let known = sizes.get(cache)
    if (!known || nowMs - known.atMs >= freshMs || (known.averageBytes === 0 && cache.size > 0)) {
      known = { atMs: nowMs, averageBytes: sampledSize(cache) }
      sizes.set(cache, known)
    }
    return known.averageBytes
  }
  return ({ apiGroup, apiVersion, resource }) => {
    const cache = registry.served(apiGroup, apiVersion, resource)?.stored.cache
    return cache && { objectCount: cache.size, averageBytes: averageBytes(cache) }
  }
}

function sampledSize(cache: WatchCache): number {
  let seen = 0
  let bytes = 0
  for (const entry of cache.select(everything)) {
    bytes += entry.bytes.length
    if (++seen === sampleSize) break
  }
  return seen === 0 ? 0 : bytes / seen
}
