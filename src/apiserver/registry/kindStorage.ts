/**
 * What a kind needs of the server beyond its strategy, which is pure (L3). The folder `kinds` has one for each kind that needs any.
 * Upstream: the storage.go files of pkg/registry, which wrap or configure the generic store.
 */
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import type { StorageHooks } from './storedResource.ts'

export interface KindStorage {
  readonly hooks?: StorageHooks | undefined
  /** The store removes objects this long after their last write. */
  readonly ttlSeconds?: number | undefined
  /** Gives it the caches to read and to listen to. Called once, before the caches are filled. */
  follow?(reader: ObjectReader): void
  /** Gives it the way to write objects of other kinds. Called once, before the first request. */
  connect?(transport: Transport): void
}

/** By group and plural name, such as '/services' or 'resource.k8s.io/resourceclaims'. */
export type KindStorages = Readonly<Record<string, KindStorage>>
