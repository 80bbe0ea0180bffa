/**
 * What the connections of a server do in one turn of the event loop (L3): answers go out together at its end, and only so many requests begin,
 * beyond the first of what a connection has just sent. A client with a hundred busy connections stands in a row with itself; one that asks one thing
 * after the other is heard at once.
 */
export interface TurnTaker {
  /** Writes its answers. */
  flush(): void
  /** Continues with the input that it left unread. */
  readOn(): void
}

export class Turns {
  readonly #most: number
  readonly #beforeAnswers: () => void
  #left: number
  #isEnding = false
  #answered: TurnTaker[] = []
  /** Those who have begun enough, the one that waits longest first. */
  readonly #row: TurnTaker[] = []

  /** @param most requests in one turn */
  constructor(most: number, beforeAnswers: () => void) {
    this.#most = most
    this.#left = most
    this.#beforeAnswers = beforeAnswers
  }

  /** Whether one more request may begin in this turn. */
  take(): boolean {
    if (this.#left === 0) return false
    this.#left--
    this.#endLater()
    return true
  }

  /** Calls its `flush` at the end of this turn. */
  flushAtEnd(connection: TurnTaker): void {
    this.#answered.push(connection)
    this.#endLater()
  }

  /** Calls its `readOn` in a later turn, when those before it had theirs. */
  readOnLater(connection: TurnTaker): void {
    this.#row.push(connection)
    this.#endLater()
  }

  #endLater(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    setImmediate(() => this.#end())
  }

  #end(): void {
    this.#isEnding = false
    this.#flush()
    this.#left = this.#most
    for (let waiting = this.#row.length; waiting > 0 && this.take(); waiting--) this.#row.shift()?.readOn()
    if (this.#row.length > 0) this.#endLater()
  }

  #flush(): void {
    if (this.#answered.length === 0) return
    const answered = this.#answered
    this.#answered = []
    this.#beforeAnswers()
    for (const connection of answered) connection.flush()
  }
}
