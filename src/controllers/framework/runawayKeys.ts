/**
 * Counts reconciles that follow a write of their own while no time passes (L3). Under virtual time such a controller never lets the clock move on;
 * under real time no key reaches the limit. Pure: gets the time from its caller.
 */
export const runawayLimit = 5_000

export class RunawayKeys {
  #atMs = Number.NaN
  readonly #counts = new Map<string, number>()

  /** @returns the reconciles of `key` in a row that each followed a write, at this one instant */
  count(key: string, wrote: boolean, nowMs: number): number {
    if (nowMs !== this.#atMs) {
      this.#atMs = nowMs
      this.#counts.clear()
    }
    if (!wrote) {
      this.#counts.delete(key)
      return 0
    }
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count
  }

  forget(key: string): void {
    this.#counts.delete(key)
  }
}
