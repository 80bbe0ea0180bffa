/** Runs long work in short turns of the event loop (L1), such as reads of many files from the kernel's memory: a promise for each would take longer than the read. */

/** Work yields to the event loop after this long. */
const sliceMs = 8

/** Where long work waits for another turn of the event loop. */
export interface Turns {
  next(): Promise<void>
}

/** Lets one waiting piece of work run in each turn of the event loop, so that many pieces together make no turn longer. */
export class SharedTurns implements Turns {
  readonly #waiting: (() => void)[] = []

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (this.#waiting.length === 1) setImmediate(this.#resume)
    })
  }

  readonly #resume = (): void => {
    this.#waiting.shift()?.()
    if (this.#waiting.length > 0) setImmediate(this.#resume)
  }
}

/** Runs work whose steps are short to its end. */
export async function inTimeSlices<T>(work: Generator<undefined, T>, turns: Turns): Promise<T> {
  await turns.next()
  let begunMs = performance.now()
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value
    if (performance.now() - begunMs < sliceMs) continue
    await turns.next()
    begunMs = performance.now()
  }
}

/** Runs the same work in one turn. */
export function atOnce<T>(work: Generator<undefined, T>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value
}

/** Undefined when the filesystem refuses, as for an entry that is removed meanwhile. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
