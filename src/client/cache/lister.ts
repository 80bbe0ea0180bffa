/**
 * Reads an informer's cache by name, namespace and label (L2). Upstream: client-go/tools/cache/listers.go (v1.36).
 */
import { type Frozen, type KubeObject, keyOf, type ObjectRef } from '#api/machinery/meta'
import { namespaceIndex, type ReadableStore } from './indexer.ts'

export interface Lister<T extends KubeObject> {
  /** Undefined when the cache does not have it. */
  get(ref: ObjectRef): Frozen<T> | undefined
  /** Objects of one namespace, or of all; only those that `matches` accepts. */
  list(options?: { readonly namespace?: string | undefined; readonly matches?: (object: Frozen<T>) => boolean }): readonly Frozen<T>[]
}

export function createLister<T extends KubeObject>(store: ReadableStore<T>): Lister<T> {
  return {
    get: (ref) => store.get(keyOf({ metadata: ref })),
    list: ({ namespace, matches } = {}) => {
      const found = namespace === undefined ? store.list() : store.byIndex(namespaceIndex, namespace)
      return matches ? found.filter(matches) : found
    },
  }
}
