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
  readonly #claims: Claim<T>[] = []

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
    const there = this.#claims.findIndex((claim) => claim.key === key)
    if (there >= 0 && this.#claims[there]?.age === age) this.#claims[there] = { key, age, value }
    else {
      if (there >= 0) this.#claims.splice(there, 1)
      this.#claims.splice(this.#placeOf(age), 0, { key, age, value })
    }
    this.#note(before, touched)
  }

  delete(key: string, touched: Set<string>): void {
    const before = this.#claims[0]?.key
    const at = this.#claims.findIndex((claim) => claim.key === key)
    if (at >= 0) this.#claims.splice(at, 1)
    this.#note(before, touched)
  }

  #placeOf(age: string): number {
    let low = 0
    let high = this.#claims.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#claims[middle]?.age ?? '') < age) low = middle + 1
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
