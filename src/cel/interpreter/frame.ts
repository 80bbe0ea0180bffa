/**
 * What one evaluation carries (L1, pure): the variables, the slots of loop variables, and the cost spent so far.
 */
import type { Activation } from '../environment.ts'
import type { Value } from '../values.ts'
import { EvaluationError } from '../values.ts'

export interface Frame {
  readonly activation: Activation
  /** Loop variables and accumulators, at places that the planner gave out; an accumulator may hold a failure. */
  readonly slots: (Value | EvaluationError)[]
  readonly costLimit: number
  cost: number
  readonly isInterrupted?: (() => boolean) | undefined
  iterations: number
}

/** Upstream's for its InterruptCheckFrequency. */
const iterationsBetweenChecks = 100

/** A planned expression. @throws EvaluationError */
export type Evaluate = (frame: Frame) => Value

/** Spends cost. @throws EvaluationError, fatal, above the limit. */
export function charge(frame: Frame, cost: number): void {
  frame.cost += cost
  if (frame.cost > frame.costLimit) throw new EvaluationError('operation cancelled: actual cost limit exceeded', true)
}

/** Counts an iteration of a loop. @throws EvaluationError, fatal, when the evaluation is interrupted. */
export function countIteration(frame: Frame): void {
  if (++frame.iterations % iterationsBetweenChecks === 0 && frame.isInterrupted?.()) throw new EvaluationError('operation interrupted', true)
}

export const noSuchOverload = (): EvaluationError => new EvaluationError('no such overload')

/** The failure, when logic may absorb it. Rethrows the rest: an exhausted budget, and bugs. */
export function absorbed(error: unknown): EvaluationError {
  if (error instanceof EvaluationError && !error.fatal) return error
  throw error
}
