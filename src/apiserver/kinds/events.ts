/** Events expire (L3). Upstream: pkg/registry/core/event/storage (v1.36). */
import type { KindStorage } from '../registry/kindStorage.ts'

const defaultTtlSeconds = 3600

export function eventStorage(ttlSeconds = defaultTtlSeconds): KindStorage {
  return { ttlSeconds }
}
