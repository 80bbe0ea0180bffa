/** One after the other (L2, pure). */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>

/** Runs work in the order of the calls, each piece when the one before has ended. */
export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}
