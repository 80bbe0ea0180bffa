/**
 * Server-side parts of a kind beyond its strategy, which is pure (L3). The folder `kinds` has one for each kind that needs them.
 * Upstream: the storage.go files of pkg/registry, which wrap or configure the generic store.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Random } from '#base/random'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import type { ServerWork } from '../core/serverWork.ts'
import type { StorageHooks } from './storedResource.ts'

export interface KindWorkDeps {
  readonly reader: ObjectReader
  /** The server's own. */
  readonly transport: Transport
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Names this server in events. */
  readonly hostName: string
}

export interface KindStorage {
  readonly hooks?: StorageHooks | undefined
  /** The store removes objects this long after their last write. */
  readonly ttlSeconds?: number | undefined
  /** Receives the reader of the caches and their changes. Called once, before the caches are filled. */
  follow?(reader: ObjectReader): void
  /** Receives the transport for writing objects of other kinds. Called once, before the first request. */
  connect?(transport: Transport): void
  works?(deps: KindWorkDeps): readonly ServerWork[]
}

/** By group and plural name, such as '/services' or 'resource.k8s.io/resourceclaims'. */
export type KindStorages = Readonly<Record<string, KindStorage>>
