/** Measures how long work keeps the event loop from others (tests only): by the CPU time of this process, so that other processes do not count. */

export interface Turns {
  readonly longestMs: number
  /** All turns together. */
  readonly totalMs: number
}

/** The longest turn of the event loop during `work`. */
export async function longestTurn(work: () => unknown): Promise<Turns> {
  const begun = cpuMs()
  let [longestMs, last, isDone] = [0, begun, false]
  const note = () => {
    const now = cpuMs()
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

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
