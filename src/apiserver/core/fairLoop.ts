/** Long loops that let others have their turn (L3): requests are answered by one thread. */
import { hasMoreMembers } from '#base/members'

/** Steps before the event loop gets its turn: some milliseconds of work. */
const slice = 200
/** The same where each step is a write. */
const writes = 25

/** Fewer steps where they take longer than this. */
const sliceMs = 20

/** Does `work` for each item in order. */
export async function inSlices<T>(items: readonly T[], work: (item: T, index: number) => void): Promise<void> {
  let begunMs = performance.now()
  for (const [index, item] of items.entries()) {
    work(item, index)
    if ((index + 1) % slice !== 0 && performance.now() - begunMs < sliceMs) continue
    await turn()
    begunMs = performance.now()
  }
}

/**
 * Does `work` for each item, at most `workers` at a time: what waits for the disk shares its flushes. After a failure no further item is begun.
 * @throws what the first failed with, when all that were begun have ended
 */
export async function withWorkers<T>(items: readonly T[], workers: number, work: (item: T, index: number) => Promise<void>): Promise<void> {
  let next = 0
  const failures: unknown[] = []
  let pause: Promise<void> | undefined
  const one = async () => {
    while (next < items.length && failures.length === 0) {
      const index = next++
      if (next % writes === 0) pause = turn()
      try {
        await work(items[index] as T, index)
      } catch (error) {
        failures.push(error)
      }
      // All workers pause together: while one continued, no other request would have a turn.
      await pause
    }
  }
  await Promise.all(Array.from({ length: Math.min(workers, items.length) }, one))
  if (failures.length > 0) throw failures[0]
}

/** For work whose steps cost what they bring: others get a turn whenever `share` of it was done. */
export class Turns {
  #done = 0
  readonly #share: number

  constructor(share: number) {
    this.#share = share
  }

  /** @returns what to wait for before going on, if anything */
  after(amount: number): Promise<void> | undefined {
    this.#done += amount
    if (this.#done < this.#share) return undefined
    this.#done = 0
    return turn()
  }
}

/** From this size on, each pass over an object (decoding, validation, comparison, encoding) gets a separate turn of the event loop. */
const largeObjectBytes = 64 * 1024

export function isLargeObject(bytes: number): boolean {
  return bytes >= largeObjectBytes
}

/** So many members, items and values of them take as long as a large object's bytes. */
const largeValueMembers = 4000

/** As {@link isLargeObject}, for a value whose length in bytes is unknown. Counts instead of timing: under virtual time the same requests take the same turns. */
export function isLargeValue(value: object): boolean {
  return hasMoreMembers(value, largeValueMembers)
}

/** Runs work that offers to pause: it does when `pauses`. */
export async function inSteps<T>(steps: Generator<undefined, T>, pauses: boolean): Promise<T> {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    if (pauses) await turn()
  }
}

/** Runs work that seldom pauses: most of the time nothing is to be waited for. */
export function inFewSteps<T>(steps: Generator<undefined, T>): T | Promise<T> {
  const first = steps.next()
  return first.done ? first.value : turn().then(() => inSteps(steps, true))
}

/**
 * Those that wait for their turn; the event loop is the process's, and so are they. What continues in one turn of the loop is bounded: a hundred
 * requests that pause together would continue in one long turn otherwise.
 */
const waiting: (() => void)[] = []
/** Microtasks from the end of a wait until the work that waited has run to its next one. */
const microtasks = 4

/** Resolves when others had their turn: timers and what has arrived. The first immediate of what has arrived runs before either of them. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(() => setImmediate(resumeSome))
  })
}

async function resumeSome(): Promise<void> {
  const begunMs = performance.now()
  // Those that wait again meanwhile continue in a later turn.
  for (let left = waiting.length; left > 0 && performance.now() - begunMs < sliceMs; left--) {
    waiting[0]?.()
    for (let i = 0; i < microtasks; i++) await undefined
    waiting.shift()
  }
  if (waiting.length > 0) setImmediate(resumeSome)
}
