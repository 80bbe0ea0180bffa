/** A store with some members replaced (testing): faults, remote behaviour, or a store that outlives the servers over it. */
import type { Store } from '#store/store'

/** `changes` wins; everything else is the store's own. */
export function changedStore(store: Store, changes: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.has(changes, name) ? Reflect.get(changes, name) : Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** Closing it does nothing: the next server opens the same store. */
export const lastingStore = (store: Store): Store => changedStore(store, { close: async () => {} })
