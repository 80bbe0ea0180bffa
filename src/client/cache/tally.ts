/**
 * Counts objects that are alike (L2): a tally sorts the objects of a store into groups, and each group into kinds. A reader that treats all objects of a kind
 * in the same way looks at one of them, and a change of one object of a large group does not cost a pass over the others.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'

export interface TallyPlace {
  readonly group: string
  /** Names everything that readers of the tally tell apart. */
  readonly kind: string
}

/** Undefined for objects that are not counted. */
export type TallyFunction<T extends KubeObject> = (object: Frozen<T>) => TallyPlace | undefined
export type Tallies<T extends KubeObject> = Readonly<Record<string, TallyFunction<T>>>

export interface Alike<T extends KubeObject> {
  readonly count: number
  /** One of them, or an earlier version of one. */
  readonly one: Frozen<T>
}

interface Kind<T extends KubeObject> {
  count: number
  one: Frozen<T>
}

export class Tally<T extends KubeObject> {
  readonly #groups = new Map<string, Map<string, Kind<T>>>()

  /** A group without objects is empty. */
  group(name: string): Iterable<Alike<T>> {
    return this.#groups.get(name)?.values() ?? []
  }

  add({ group, kind }: TallyPlace, object: Frozen<T>): void {
    let kinds = this.#groups.get(group)
    if (!kinds) {
      kinds = new Map()
      this.#groups.set(group, kinds)
    }
    const there = kinds.get(kind)
    if (!there) kinds.set(kind, { count: 1, one: object })
    else {
      there.count++
      // The newest: an old version is not kept in memory for longer than needed.
      there.one = object
    }
  }

  remove({ group, kind }: TallyPlace): void {
    const kinds = this.#groups.get(group)
    const there = kinds?.get(kind)
    if (!kinds || !there) return
    there.count--
    if (there.count === 0) kinds.delete(kind)
    if (kinds.size === 0) this.#groups.delete(group)
  }
}
