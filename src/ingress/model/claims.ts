/**
 * The Ingresses that claim one path, certificate or default backend (L3, pure), the oldest first: it has what it claims. Matches of routes share a path: the
 * first that accepts a request has it.
 */

export interface Claimant {
  readonly key: string
  /** Orders Ingresses from the oldest to the newest, and matches of routes by precedence. */
  readonly age: string
}

interface Claim<T> extends Claimant {
  readonly value: T
}

export class Claims<T> {
  /** In order. Others decide how many there are: each step of a change takes the logarithm of their number. */
  readonly #claims: Claim<T>[] = []
  readonly #ages = new Map<string, string>()

  get isEmpty(): boolean {
    return this.#claims.length === 0
  }

  get value(): T | undefined {
    return this.#claims[0]?.value
  }

  /** The first value that is accepted. */
  find(accepts: (value: T) => boolean): T | undefined {
    return this.#claims.find(({ value }) => accepts(value))?.value
  }

  isHeldBy(key: string): boolean {
    return this.#claims[0]?.key === key
  }

  /** Adds or replaces the claim of one Ingress; `touched` gets the keys of those that have won or lost by it. */
  set({ key, age }: Claimant, value: T, touched: Set<string>): void {
    const before = this.#claims[0]?.key
    const isThere = this.#ages.get(key) === age
    if (!isThere) this.#remove(key)
    this.#claims.splice(this.#placeOf({ key, age }), isThere ? 1 : 0, { key, age, value })
    this.#ages.set(key, age)
    this.#note(before, touched)
  }

  delete(key: string, touched: Set<string>): void {
    const before = this.#claims[0]?.key
    this.#remove(key)
    this.#note(before, touched)
  }

  #remove(key: string): void {
    const age = this.#ages.get(key)
    if (age === undefined) return
    this.#claims.splice(this.#placeOf({ key, age }), 1)
    this.#ages.delete(key)
  }

  /** Where the claim is, or belongs. */
  #placeOf({ key, age }: Claimant): number {
    let low = 0
    let high = this.#claims.length
    while (low < high) {
      const middle = (low + high) >> 1
      const one = this.#claims[middle] as Claim<T>
      if (one.age < age || (one.age === age && one.key < key)) low = middle + 1
      else high = middle
    }
    return low
  }

  #note(before: string | undefined, touched: Set<string>): void {
    const now = this.#claims[0]?.key
    if (before === now) return
    if (before !== undefined) touched.add(before)
    if (now !== undefined) touched.add(now)
  }
}
