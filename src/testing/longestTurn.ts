/** Measures how long work keeps the event loop from others (tests only): by the time of the main thread, so that nothing else counts. */
import { threadMs } from './threadTime.ts'

export interface Turns {
  readonly longestMs: number
  /** All turns together. */
  readonly totalMs: number
}

/** The longest turn of the event loop during `work`. */
export async function longestTurn(work: () => unknown): Promise<Turns> {
  const begun = threadMs()
  let [longestMs, last, isDone] = [0, begun, false]
  const note = () => {
    const now = threadMs()
    longestMs = Math.max(longestMs, now - last)
    last = now
  }
  const beat = () => {
    note()
    if (!isDone) setImmediate(beat)
  }
  setImmediate(beat)
  await work()
  isDone = true
  note()
  return { longestMs, totalMs: last - begun }
}
