/** What was found out about an object of the Gateway API (L3, pure), and the conditions that say so. */
import type { Frozen } from '#api/machinery/meta'
import type { Condition } from './kinds.ts'

export type Outcome = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

export function holds(type: string, message = '', reason: string = type): Outcome {
  return { type, status: 'True', reason, message }
}

export function fails(type: string, reason: string, message: string): Outcome {
  return { type, status: 'False', reason, message }
}

export function isTrue({ status }: Outcome): boolean {
  return status === 'True'
}

/** The conditions with the time of the last change of their status. @param now as the API writes times */
export function conditionsOf(outcomes: readonly Outcome[], generation: number, before: readonly Frozen<Condition>[] = [], now: string): Condition[] {
  return outcomes.map((outcome) => {
    const there = before.find(({ type }) => type === outcome.type)
    const lastTransitionTime = there?.status === outcome.status ? (there.lastTransitionTime ?? now) : now
    return { ...outcome, observedGeneration: generation, lastTransitionTime }
  })
}
