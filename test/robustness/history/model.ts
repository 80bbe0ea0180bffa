/**
 * The model: a list of all changes per kind. It reads them from the store, below all tested code; the writers check that they equal the
 * acknowledged writes.
 */
import assert from 'node:assert/strict'
import type { KubeObject } from '#api/machinery/meta'
import type { Store, StoreEvent } from '#store/store'
import { type Any, type HistoryKind, kinds, type Selected } from './kinds.ts'

export interface Change {
  readonly revision: number
  /** `namespace/name`. */
  readonly key: string
  /** Undefined: deleted. */
  readonly object: Any
  /** The previous object. */
  readonly previous: Any
  readonly atMs: number
}

export interface ExpectedEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly revision: number
  readonly object: Any
}

export class Model {
  readonly #store: Store
  readonly #now: () => number
  readonly #changes = new Map<HistoryKind, Change[]>(kinds.map((kind) => [kind, []]))
  readonly #current = new Map<HistoryKind, Map<string, Any>>(kinds.map((kind) => [kind, new Map()]))
  #revision = 0
  /** There is no history before it. */
  #first = 0
  /** Reads below it fail. */
  compacted = 0

  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Follows the store until the signal aborts. `noteCompactions` records compactions. */
  follow(signal: AbortSignal): Promise<void> {
    const take = (revision: number, events: readonly StoreEvent[]) => {
      for (const event of events) this.#take(event, revision)
      this.#revision = revision
    }
    this.#revision = this.#latest()
    this.#first = this.#revision
    // All keys are followed: the one of compactions is not below /registry/.
    const from = { from: '!', to: '~', startRevision: this.#revision + 1 }
    return this.#store.watch(from, ({ revision, events }) => take(revision, events), signal)
  }

  /** Everything that is written by now is in the model afterwards. */
  async settled(): Promise<void> {
    while (this.#revision < this.#latest()) await new Promise((resolve) => setImmediate(resolve))
  }

  /** A local store answers at once. */
  #latest(): number {
    return this.#store.latestRevision() as number
  }

  nowMs(): number {
    return this.#now()
  }

  get first(): number {
    return this.#first
  }

  get revision(): number {
    return this.#revision
  }

  changes(kind: HistoryKind): readonly Change[] {
    return this.#changes.get(kind) as Change[]
  }

  get(kind: HistoryKind, key: string): Any {
    return this.#current.get(kind)?.get(key)
  }

  /** What a list shows, in the order of keys. */
  stateAt({ kind, matches }: Selected, revision: number): Any[] {
    const state = new Map<string, Any>()
    for (const change of this.changes(kind)) {
      if (change.revision > revision) break
      if (change.object === undefined) state.delete(change.key)
      else state.set(change.key, change.object)
    }
    return [...state]
      .filter(([, object]) => matches(object))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object)
  }

  /** The index of the first change after the revision. */
  indexAfter(kind: HistoryKind, revision: number): number {
    const changes = this.changes(kind)
    let index = changes.length
    while (index > 0 && (changes[index - 1] as Change).revision > revision) index--
    return index
  }

  /** What a watch shows of the changes from `index` on. */
  eventsFrom({ kind, matches }: Selected, index: number): ExpectedEvent[] {
    const events: ExpectedEvent[] = []
    for (const { revision, object, previous } of this.changes(kind).slice(index)) {
      const [is, was] = [object !== undefined && matches(object), previous !== undefined && matches(previous)]
      if (is) events.push({ type: was ? 'MODIFIED' : 'ADDED', revision, object })
      else if (was) events.push({ type: 'DELETED', revision, object: withRevision(previous, revision) })
    }
    return events
  }

  #take({ type, kv }: StoreEvent, revision: number): void {
    const kind = kinds.find(({ prefix }) => kv.key.startsWith(prefix))
    if (!kind) return
    const key = kv.key.slice(kind.prefix.length)
    const current = this.#current.get(kind) as Map<string, Any>
    const previous = current.get(key)
    const object = type === 'put' ? withRevision(JSON.parse(Buffer.from(kv.value).toString()), revision) : undefined
    assert.ok(object ?? previous, `${key} was deleted twice`)
    if (object) current.set(key, object)
    else current.delete(key)
    this.#changes.get(kind)?.push({ revision, key, object, previous, atMs: this.#now() })
  }
}

/** The store keeps no resourceVersion in its values: it is the revision. */
function withRevision(object: KubeObject, revision: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } }
}
