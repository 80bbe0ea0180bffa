/**
 * Compiles the expressions of a policy or webhook when a request first needs them (L3). They may be thousands: other requests get turns meanwhile,
 * and those that need the same wait together. Upstream compiles on goroutines of its informers.
 */
import { compilingInSteps } from '#cel/compilingInSteps'
import { inFewSteps, inSteps, turn } from '../../core/fairLoop.ts'

export type OnDemand<T> = () => T | Promise<T>

/** Longer expressions begin to compile in a turn of their own: a request may need those of a hundred webhooks at once. */
const manyCharacters = 4096

/** Compiles at the first call, once. `compile`: synchronous and without effects. `source`: the object with the expressions. */
export function onDemand<T extends object>(source: object, compile: () => T): OnDemand<T> {
  let made: T | Promise<T> | undefined
  return () => {
    if (made !== undefined) return made
    const steps = compilingInSteps(compile, { keepsPrograms: true })
    const isLong = JSON.stringify(source).length >= manyCharacters
    const making = isLong ? turn().then(() => inSteps(steps, true)) : inFewSteps(steps)
    made = making
    if (making instanceof Promise) {
      making.then(
        (value) => {
          made = value
        },
        () => {
          made = undefined
        },
      )
    }
    return made
  }
}
