/**
 * How many requests the connections of a server begin in one turn of the event loop, beyond the first of each (L3). A client with a hundred busy
 * connections would otherwise make every turn a hundred times as long for those who ask one thing after the other.
 */
export class TurnBudget {
  readonly #most: number
  #left: number

  constructor(most: number) {
    this.#most = most
    this.#left = most
  }

  /** Whether one more may begin in this turn. */
  take(): boolean {
    if (this.#left === 0) return false
    // Whoever is told to wait asks again in an immediate of its own, which comes after this one.
    if (this.#left === this.#most) setImmediate(() => this.#renew())
    this.#left--
    return true
  }

  #renew(): void {
    this.#left = this.#most
  }
}
