/**
 * A resource's client whose writes are in an informer's cache when they return (L2): what reads the cache next never works on a view from
 * before its own write. Upstream: the consistency store of pkg/controller/util (v1.36), which makes the next sync wait instead.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { ResourceClient } from '../client.ts'
import type { SharedInformer } from './sharedInformer.ts'

export interface ReadYourWritesOptions {
  /** How long a write that has succeeded waits for the cache; then it returns all the same. */
  readonly limitMs?: number | undefined
}

const defaultLimitMs = 10_000

/**
 * Creates, updates and patches through `client` return once `informer` has seen them. Deletions do not wait: what they leave has no
 * resourceVersion of its own. An informer that selects learns of what it does not hold only from bookmarks, about once a minute.
 */
export function readYourWrites<T extends KubeObject>(
  client: ResourceClient<T>,
  informer: SharedInformer<T>,
  clock: Clock,
  { limitMs = defaultLimitMs }: ReadYourWritesOptions = {},
): ResourceClient<T> {
  const seen = async <W extends Frozen<KubeObject>>(written: W, signal: AbortSignal | undefined): Promise<W> => {
    const { resourceVersion } = written.metadata
    if (!resourceVersion) return written
    using limit = deadlineScope({ clock, ms: limitMs }, signal)
    // The write is done, whatever becomes of the wait.
    await informer.caughtUp(resourceVersion, limit.signal).catch(() => {})
    return written
  }
  return afterWrites(client, seen)
}

/** The client with something done after each successful create, update and patch that is no dry run, before it returns. */
export function afterWrites<T extends KubeObject>(
  client: ResourceClient<T>,
  seen: <W extends Frozen<KubeObject>>(written: W, signal: AbortSignal | undefined) => Promise<W>,
): ResourceClient<T> {
  return {
    ...client,
    create: async (object, options) => (options?.dryRun ? client.create(object, options) : seen(await client.create(object, options), options?.signal)),
    update: async (object, options) => (options?.dryRun ? client.update(object, options) : seen(await client.update(object, options), options?.signal)),
    updateStatus: async (object, options) =>
      options?.dryRun ? client.updateStatus(object, options) : seen(await client.updateStatus(object, options), options?.signal),
    patch: async (ref, type, body, options) =>
      options?.dryRun ? client.patch(ref, type, body, options) : seen(await client.patch(ref, type, body, options), options?.signal),
  }
}
