/**
 * Calls the components of this process that follow a watch cache (L3), for each change. One that throws is reported; the others are still called.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'

export interface SeenChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: Frozen<KubeObject>
  readonly old?: Frozen<KubeObject> | undefined
}

export type ChangeListener = (change: SeenChange) => void

/** Called with the key of the object and what the listener threw. */
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
