/** Work in the order of its arrival within an owner, the owners by turns (L3): one that adds much delays its own work. */
export class FairQueue<T> {
  /** In the order of their turns. */
  readonly #byOwner = new Map<string, Map<string, T>>()
  readonly #owners = new Map<string, string>()

  get(key: string): T | undefined {
    return this.#byOwner.get(this.#owners.get(key) ?? '')?.get(key)
  }

  /** Replaces the value of a key that is there, which keeps its place. The owner of a key never changes. */
  set(owner: string, key: string, value: T): void {
    const there = this.#byOwner.get(owner) ?? new Map<string, T>()
    there.set(key, value)
    this.#byOwner.set(owner, there)
    this.#owners.set(key, owner)
  }

  shift(): { readonly key: string; readonly value: T } | undefined {
    const [first] = this.#byOwner
    if (!first) return undefined
    const [owner, ofOwner] = first
    this.#byOwner.delete(owner)
    const [next] = ofOwner
    if (!next) return this.shift()
    const [key, value] = next
    ofOwner.delete(key)
    this.#owners.delete(key)
    if (ofOwner.size > 0) this.#byOwner.set(owner, ofOwner)
    return { key, value }
  }
}
