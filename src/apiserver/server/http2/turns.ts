/**
 * Schedules the connections of a server within a turn of the event loop (L3): answers are written together at its end, and only a limited number of
 * requests begins, beyond the first one of a connection's new input. So a client with a hundred busy connections mainly delays itself, and a client
 * that sends one request at a time is served at once.
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
  /** Paused connections, the longest waiting first. */
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
