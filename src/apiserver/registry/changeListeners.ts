/**
 * Components of this process that hear of each change of a watch cache (L3). One that fails keeps no other from hearing of the change, and is reported.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'

export interface SeenChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: Frozen<KubeObject>
  readonly old?: Frozen<KubeObject> | undefined
}

export type ChangeListener = (change: SeenChange) => void

/** Hears which key's change a listener failed on. */
export type ListenerFailed = (key: string, error: unknown) => void

export class ChangeListeners {
  readonly #listeners = new Set<ChangeListener>()
  readonly #failed: ListenerFailed

  constructor(failed: ListenerFailed) {
    this.#failed = failed
  }

  get isEmpty(): boolean {
    return this.#listeners.size === 0
  }

  add(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  call(key: string, change: SeenChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change)
      } catch (error) {
        this.#failed(key, error)
      }
    }
  }
}
