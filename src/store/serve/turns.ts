/** Work one after the other, and a limit of it (L2, pure). */
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

/** Runs work at once. @param refusal what the work rejects with while `most` pieces have not ended */
export function atMost(most: number, refusal: () => Error): Turns {
  let running = 0
  return async (work) => {
    if (running >= most) throw refusal()
    running++
    try {
      return await work()
    } finally {
      running--
    }
  }
}
