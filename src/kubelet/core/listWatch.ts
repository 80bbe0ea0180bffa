/**
 * Keeps one selection of objects in step with the API server (L3): lists, watches from there, and lists again after 410 Gone.
 * Small on purpose: a kubelet watches its own pods, the services, and single ConfigMaps and Secrets.
 */
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { ResourceClient } from '#client/client'

export interface Selection {
  readonly namespace?: string | undefined
  readonly fieldSelector?: string | undefined
}

export interface Handler<T> {
  /** The whole selection, after the first list and after each further one. Must not fail because of one object. */
  replace(objects: readonly Frozen<T>[]): void
  changed(object: Frozen<T>): void
  deleted(object: Frozen<T>): void
}

/** One object's fault must not keep the others from the node. */
export function isolated(log: Logger, object: Frozen<KubeObject>, call: () => void): void {
  try {
    call()
  } catch (error) {
    log.error(error, 'An object could not be taken in', { kind: object.kind, key: keyOf(object) })
  }
}

const initialRetryMs = 500
const maxRetryMs = 30_000

/** Runs until aborted. Failures are retried with a growing delay. */
export async function listWatch<T extends KubeObject>(
  client: ResourceClient<T>,
  selection: Selection,
  handler: Handler<T>,
  deps: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  let resourceVersion: string | undefined
  // The first list may be stale, which is fine; after Expired an older view than ours would make deleted pods reappear.
  let listFrom: { readonly resourceVersion?: string } = { resourceVersion: '0' }
  let retryMs = initialRetryMs
  while (!signal.aborted) {
    try {
      if (resourceVersion === undefined) {
        const list = await client.list({ ...selection, ...listFrom, signal })
        resourceVersion = list.metadata.resourceVersion ?? ''
        handler.replace(list.items)
      }
      for await (const batch of client.watch({ ...selection, resourceVersion, allowWatchBookmarks: true, signal })) {
        retryMs = initialRetryMs
        for (const { type, object } of batch) {
          resourceVersion = object.metadata.resourceVersion ?? resourceVersion
          if (type === 'DELETED') isolated(deps.log, object, () => handler.deleted(object))
          else if (type !== 'BOOKMARK') isolated(deps.log, object, () => handler.changed(object))
        }
      }
    } catch (error) {
      if (signal.aborted) return
      const forgotten = isStatus(error, 'Expired') || isStatus(error, 'Gone')
      if (forgotten) {
        resourceVersion = undefined
        listFrom = {}
      } else deps.log.v(2).info('Watch ended', { resource: client.resource.resource, reason: messageOf(error) })
    }
    if (signal.aborted) return
    await deps.clock.sleep(retryMs, signal).catch(() => {})
    retryMs = Math.min(retryMs * 2, maxRetryMs)
  }
}

/** A store by key over listWatch, for lookups. */
export interface Mirror<T extends KubeObject> {
  get(key: string): Frozen<T> | undefined
  list(): readonly Frozen<T>[]
  /** Resolves after the first list, or at the end when there never was one. */
  readonly synced: Promise<void>
}

export type OnChange<T> = (object: Frozen<T>) => void

/** A mirror that runs until its signal aborts. */
export type Followed<T extends KubeObject> = Mirror<T> & { readonly done: Promise<void> }

/** Mirrors a selection until aborted; calls `onChange` for each object that is added, changed or deleted. */
export function mirror<T extends KubeObject>(
  client: ResourceClient<T>,
  selection: Selection,
  deps: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
  onChange: OnChange<T> = () => {},
): Followed<T> {
  const objects = new Map<string, Frozen<T>>()
  let markSynced = () => {}
  const synced = new Promise<void>((resolve) => {
    markSynced = resolve
  })
  const changed = (item: Frozen<T>) => isolated(deps.log, item, () => onChange(item))
  const handler: Handler<T> = {
    replace: (items) => {
      const before = new Map(objects)
      objects.clear()
      for (const item of items) {
        objects.set(keyOf(item), item)
        if (before.get(keyOf(item))?.metadata.resourceVersion !== item.metadata.resourceVersion) changed(item)
      }
      for (const [key, item] of before) if (!objects.has(key)) changed(item)
      markSynced()
    },
    changed: (item) => {
      objects.set(keyOf(item), item)
      onChange(item)
    },
    deleted: (item) => {
      objects.delete(keyOf(item))
      onChange(item)
    },
  }
  // The wait for the first list ends even if the mirror stops before it.
  const done = listWatch(client, selection, handler, deps, signal).finally(markSynced)
  return { get: (key) => objects.get(key), list: () => [...objects.values()], synced, done }
}
