/** Counts the seats of synchronously answered requests for some more turns of the event loop (L3). */
import type { Clock } from '#base/clock'
import type { FlowRequest } from './flowRequest.ts'

const turnsRemembered = 8

export function createLingering(clock: Clock): (entry: FlowRequest) => void {
  /** The requests of each remembered turn, the oldest first; the last list is this turn's. */
  let turns: FlowRequest[][] = []
  const turn = () => {
    const over = turns.length < turnsRemembered ? [] : (turns.shift() ?? [])
    if (turns.some((entries) => entries.length > 0)) {
      turns.push([])
      setImmediate(turn)
    } else turns = []
    if (over.length === 0) return
    const nowMs = clock.monotonicMs()
    for (const entry of over) entry.set.forget(entry, nowMs)
  }
  return (entry) => {
    if (turns.length === 0) {
      turns.push([])
      setImmediate(turn)
    }
    turns[turns.length - 1]?.push(entry)
    entry.set.remember(entry)
  }
}
