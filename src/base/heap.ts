/** A binary heap (L0): the smallest item first, by the comparison it is given. Ties leave in the order they came. */
export class Heap<T> {
  readonly #items: { value: T; order: number }[] = []
  readonly #compare: (a: T, b: T) => number
  #order = 0

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]?.value
  }

  push(value: T): void {
    this.#items.push({ value, order: this.#order++ })
    this.#siftUp(this.#items.length - 1)
  }

  pop(): T | undefined {
    const top = this.#items[0]
    if (!top) return undefined
    const last = this.#items.pop()
    if (last && this.#items.length > 0) {
      this.#items[0] = last
      this.#siftDown(0)
    }
    return top.value
  }

  #less(i: number, j: number): boolean {
    const a = this.#items[i]
    const b = this.#items[j]
    if (!a || !b) return false
    const byValue = this.#compare(a.value, b.value)
    return byValue !== 0 ? byValue < 0 : a.order < b.order
  }

  #swap(i: number, j: number): void {
    const items = this.#items
    const held = items[i]
    const other = items[j]
    if (!held || !other) return
    items[i] = other
    items[j] = held
  }

  #siftUp(start: number): void {
    let i = start
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!this.#less(i, parent)) return
      this.#swap(i, parent)
      i = parent
    }
  }

  #siftDown(start: number): void {
    let i = start
    for (;;) {
      let smallest = i
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < this.#items.length && this.#less(child, smallest)) smallest = child
      }
      if (smallest === i) return
      this.#swap(i, smallest)
      i = smallest
    }
  }
}
