/**
 * The items of a work queue that wait to be taken (L2): higher priorities first, within one in the order they came. An item is in it once,
 * at the highest priority that any caller requested. Upstream: controller-runtime/pkg/controller/priorityqueue.
 */
export class ReadyItems<T> {
  /** By priority, highest first; a Set keeps the order and lets an item move up cheaply. Most queues know one priority. */
  readonly #levels: { readonly priority: number; readonly items: Set<T> }[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add(item: T, priority: number): void {
    this.#level(priority).add(item)
    this.#size++
  }

  /** Moves a waiting item up; does nothing for one that is not waiting at `from`. */
  raise(item: T, from: number, to: number): void {
    if (this.#level(from).delete(item)) this.#level(to).add(item)
  }

  /** Takes the first; undefined when there is none. */
  shift(): { readonly item: T } | undefined {
    for (const { items } of this.#levels) {
      for (const item of items) {
        items.delete(item)
        this.#size--
        return { item }
      }
    }
    return undefined
  }

  #level(priority: number): Set<T> {
    const at = this.#levels.findIndex((level) => level.priority <= priority)
    const there = this.#levels[at]
    if (there?.priority === priority) return there.items
    const made = { priority, items: new Set<T>() }
    this.#levels.splice(at < 0 ? this.#levels.length : at, 0, made)
    return made.items
  }
}
