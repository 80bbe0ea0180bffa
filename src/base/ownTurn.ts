/** Large pieces of work that many callers begin at once, spread over turns of the event loop (L0). */
import type { Clock } from './clock.ts'

const newest = new WeakMap<Clock, Promise<void>>()

/** Resolves in a turn of the event loop in which no other caller of this function continues. */
export function ownTurn(clock: Clock): Promise<void> {
  const mine = (newest.get(clock) ?? Promise.resolve()).then(() => clock.turn())
  newest.set(clock, mine)
  return mine
}
