/**
 * The objects an informer knows, by key, with secondary indexes (L2). Holds references only: objects are frozen and may be the server's own.
 * One thread, so a read sees a whole state; there is nothing to lock. Upstream: client-go/tools/cache/thread_safe_store.go (v1.36).
 */
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { type Alike, type Tallies, Tally, type TallyFunction, type TallyPlace } from './tally.ts'

/** The index values of an object: none, one or several. */
export type IndexFunction<T extends KubeObject> = (object: Frozen<T>) => readonly string[]
export type Indexers<T extends KubeObject> = Readonly<Record<string, IndexFunction<T>>>
/** Called for an object that an index function failed on: the object is kept, without a value in that index. */
export type OnIndexFault<T extends KubeObject> = (error: unknown, index: string, object: Frozen<T>) => void

/** The index by namespace that every store has. */
export const namespaceIndex = 'namespace'

/** What readers of an informer's cache see. Arrays are fresh; objects are shared and frozen. */
export interface ReadableStore<T extends KubeObject> {
  readonly size: number
  get(key: string): Frozen<T> | undefined
  list(): readonly Frozen<T>[]
  keys(): IterableIterator<string>
  values(): IterableIterator<Frozen<T>>
  /** Objects that have `value` among their values of the index. @throws Error when there is no such index. */
  byIndex(index: string, value: string): readonly Frozen<T>[]
  /** How many objects {@link byIndex} gives. */
  countByIndex(index: string, value: string): number
  /** All values of an index that some object has. */
  indexValues(index: string): readonly string[]
  /** The objects of one group of a tally, counted by kind. @throws Error when there is no such tally */
  tally(name: string, group: string): Iterable<Alike<T>>
}

interface Index<T extends KubeObject> {
  readonly name: string
  readonly values: IndexFunction<T>
  readonly keys: Map<string, Set<string>>
}

interface NamedTally<T extends KubeObject> {
  readonly name: string
  readonly place: TallyFunction<T>
  readonly tally: Tally<T>
}

export class Indexer<T extends KubeObject> implements ReadableStore<T> {
  readonly #objects = new Map<string, Frozen<T>>()
  readonly #indexes = new Map<string, Index<T>>()
  readonly #tallies = new Map<string, NamedTally<T>>()

  readonly #onFault: OnIndexFault<T>

  constructor(indexers: Indexers<T> = {}, onFault: OnIndexFault<T> = () => {}) {
    this.#onFault = onFault
    this.addIndexers({ [namespaceIndex]: (object) => [object.metadata.namespace ?? ''] })
    this.addIndexers(indexers)
  }

  /** Adds indexes, over what is there already too. @throws Error when the name is taken by another function. */
  addIndexers(indexers: Indexers<T>): void {
    for (const [name, values] of Object.entries(indexers)) {
      const there = this.#indexes.get(name)
      if (there?.values === values) continue
      if (there) throw new Error(`indexer conflict: ${name}`)
      const index: Index<T> = { name, values, keys: new Map() }
      this.#indexes.set(name, index)
      for (const [key, object] of this.#objects) insert(index.keys, this.#valuesOf(index, object, true), key)
    }
  }

  /** Adds tallies, over what is there already too. @throws Error when the name is taken by another function. */
  addTallies(tallies: Tallies<T>): void {
    for (const [name, place] of Object.entries(tallies)) {
      const there = this.#tallies.get(name)
      if (there?.place === place) continue
      if (there) throw new Error(`tally conflict: ${name}`)
      const named: NamedTally<T> = { name, place, tally: new Tally() }
      this.#tallies.set(name, named)
      for (const object of this.#objects.values()) this.#count(named, undefined, object)
    }
  }

  get size(): number {
    return this.#objects.size
  }

  get(key: string): Frozen<T> | undefined {
    return this.#objects.get(key)
  }

  list(): readonly Frozen<T>[] {
    return [...this.#objects.values()]
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys()
  }

  values(): IterableIterator<Frozen<T>> {
    return this.#objects.values()
  }

  byIndex(index: string, value: string): readonly Frozen<T>[] {
    const found: Frozen<T>[] = []
    for (const key of this.#index(index).get(value) ?? []) {
      const object = this.#objects.get(key)
      if (object) found.push(object)
    }
    return found
  }

  countByIndex(index: string, value: string): number {
    return this.#index(index).get(value)?.size ?? 0
  }

  indexValues(index: string): readonly string[] {
    return [...this.#index(index).keys()]
  }

  tally(name: string, group: string): Iterable<Alike<T>> {
    const named = this.#tallies.get(name)
    if (!named) throw new Error(`Tally with name ${name} does not exist`)
    return named.tally.group(group)
  }

  /** Adds or replaces; returns what was there. */
  set(object: Frozen<T>): Frozen<T> | undefined {
    const key = keyOf(object)
    const old = this.#objects.get(key)
    this.#objects.set(key, object)
    for (const index of this.#indexes.values()) {
      reindex(index.keys, old ? this.#valuesOf(index, old, false) : [], this.#valuesOf(index, object, true), key)
    }
    for (const tally of this.#tallies.values()) this.#count(tally, old, object)
    return old
  }

  /** Removes; returns what was there. */
  delete(key: string): Frozen<T> | undefined {
    const old = this.#objects.get(key)
    if (!old) return undefined
    this.#objects.delete(key)
    for (const index of this.#indexes.values()) reindex(index.keys, this.#valuesOf(index, old, false), [], key)
    for (const tally of this.#tallies.values()) this.#count(tally, old, undefined)
    return old
  }

  /** Counts `object` instead of `old`. The new one comes first: a kind that both have keeps its place. */
  #count(named: NamedTally<T>, old: Frozen<T> | undefined, object: Frozen<T> | undefined): void {
    const after = object && this.#placeOf(named, object, true)
    if (object && after) named.tally.add(after, object)
    const before = old && this.#placeOf(named, old, false)
    if (before) named.tally.remove(before)
  }

  #placeOf({ name, place }: NamedTally<T>, object: Frozen<T>, tells: boolean): TallyPlace | undefined {
    try {
      return place(object)
    } catch (error) {
      if (tells) this.#onFault(error, name, object)
      return undefined
    }
  }

  /** @param tells whether a fault is reported: once for each version of an object */
  #valuesOf(index: Index<T>, object: Frozen<T>, tells: boolean): readonly string[] {
    try {
      return index.values(object)
    } catch (error) {
      if (tells) this.#onFault(error, index.name, object)
      return []
    }
  }

  #index(name: string): Map<string, Set<string>> {
    const index = this.#indexes.get(name)
    if (!index) throw new Error(`Index with name ${name} does not exist`)
    return index.keys
  }
}

function reindex(keys: Map<string, Set<string>>, before: readonly string[], after: readonly string[], key: string): void {
  if (before.length === after.length && before.every((value, i) => value === after[i])) return
  for (const value of before) {
    const set = keys.get(value)
    set?.delete(key)
    if (set?.size === 0) keys.delete(value)
  }
  insert(keys, after, key)
}

function insert(keys: Map<string, Set<string>>, values: readonly string[], key: string): void {
  for (const value of values) {
    const set = keys.get(value)
    if (set) set.add(key)
    else keys.set(value, new Set([key]))
  }
}
