/**
 * The objects of one kind as they will be once the scheduler's own changes have come back (L3): what is promised to one pod is not promised to the
 * next. Upstream: plugins/volumebinding/assume_cache.go (v1.36).
 */
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { ReadableStore } from '#client/cache/indexer'
import type { Resource } from '#client/client'
import type { Handle } from '../../framework/handle.ts'

export class AssumedObjects<T extends KubeObject> {
  readonly #store: ReadableStore<T>
  readonly #assumed = new Map<string, Frozen<T>>()
  readonly #groups = new Map<string, Map<string, Frozen<T>>>()
  readonly #groupOf: (object: Frozen<T>) => string

  /** @param groupOf by what `group` finds objects; `changed` is called after each change that the API tells */
  constructor(handle: Handle, resource: Resource<T>, groupOf: (object: Frozen<T>) => string, changed: () => void) {
    this.#groupOf = groupOf
    const seen = (old: Frozen<T> | undefined, object: Frozen<T> | undefined) => {
      if (old === object) return
      if (old) this.#leave(old)
      if (object) this.#enter(object)
      changed()
    }
    this.#store = handle.watch(resource, { onAdd: (object) => seen(undefined, object), onUpdate: seen, onDelete: (object) => seen(object, undefined) })
  }

  /** With what is assumed. */
  get(key: string): Frozen<T> | undefined {
    return this.#assumed.get(key) ?? this.#store.get(key)
  }

  /** As the API has it. */
  confirmed(key: string): Frozen<T> | undefined {
    return this.#store.get(key)
  }

  *group(name: string): Iterable<Frozen<T>> {
    for (const [key, object] of this.#groups.get(name) ?? []) yield this.#assumed.get(key) ?? object
  }

  /** Valid until the API has a newer version of the object. */
  assume(object: Frozen<T>): void {
    this.#assumed.set(keyOf(object), object)
  }

  restore(object: Frozen<T>): void {
    this.#assumed.delete(keyOf(object))
  }

  #enter(object: Frozen<T>): void {
    const name = this.#groupOf(object)
    const group = this.#groups.get(name) ?? new Map<string, Frozen<T>>()
    this.#groups.set(name, group.set(keyOf(object), object))
  }

  #leave(object: Frozen<T>): void {
    const key = keyOf(object)
    this.#assumed.delete(key)
    const name = this.#groupOf(object)
    const group = this.#groups.get(name)
    group?.delete(key)
    if (group?.size === 0) this.#groups.delete(name)
  }
}
