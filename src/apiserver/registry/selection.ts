/**
 * The selection of a list or watch (L3): a namespace, a label selector, a field selector. Equal selections of one resource have equal keys,
 * so that their watchers are served together.
 * Upstream: storage.SelectionPredicate.
 */
import type { CacheEntry } from '../core/watch/cacheEntry.ts'

export interface Selection {
  readonly key: string
  /** Empty: all namespaces. */
  readonly namespace: string
  /** Set when a selector can reject objects of the namespace. */
  readonly matchesObject?: ((entry: CacheEntry) => boolean) | undefined
  /** Exact requirements on fields, such as metadata.name, by which the watch cache dispatches events. */
  readonly exactFields: Readonly<Record<string, string>>
}

export const everything: Selection = { key: '', namespace: '', exactFields: {} }

/** The range of keys that a selection can touch. */
export function keyRange({ namespace }: Pick<Selection, 'namespace'>): { from: string; to: string | undefined } {
  return namespace ? { from: `${namespace}/`, to: `${namespace}0` } : { from: '', to: undefined }
}

/** Whether the object of a key can be among the selected ones. */
export function canTouch({ namespace }: Selection, key: string): boolean {
  return namespace === '' || inNamespace(key, namespace)
}

export function matches(selection: Selection, entry: CacheEntry): boolean {
  if (selection.namespace && !inNamespace(entry.key, selection.namespace)) return false
  return selection.matchesObject ? selection.matchesObject(entry) : true
}

function inNamespace(key: string, namespace: string): boolean {
  return key.length > namespace.length && key.charCodeAt(namespace.length) === 0x2f && key.startsWith(namespace)
}
