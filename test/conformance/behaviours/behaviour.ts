/**
 * What a behaviour of upstream's conformance suite is here: a name in our words, and what to do and to see on a cluster of real containers.
 * One file per group of the feature map (section 3.6), listed in index.ts; run.ts runs them.
 */
import type { BehaviourContext } from './context.ts'

export interface Behaviour {
  /** What users may rely on, in our words: unique in its group. */
  readonly name: string
  /** Takes a whole node, taints one, or counts what runs on it: nothing else runs at the same time. */
  readonly alone?: boolean
  /** How long it may take when back-offs and grace periods are part of it. Default: 90. */
  readonly seconds?: number
  /** Why this machine cannot do it; undefined where it can. */
  readonly obstacle?: () => string | undefined
  run(context: BehaviourContext): Promise<void>
}

export interface BehaviourGroup {
  /** As the feature map names it: 'sig-node'. */
  readonly sig: string
  /** As the feature map names it: 'Init containers'. */
  readonly title: string
  /** Rows of the feature map that it proves: 'KUB-03'. */
  readonly rows: readonly string[]
  readonly behaviours: readonly Behaviour[]
}

/** A table of behaviours that differ in a value. */
export function table<Row>(rows: readonly Row[], behaviour: (row: Row) => Behaviour): Behaviour[] {
  return rows.map(behaviour)
}
