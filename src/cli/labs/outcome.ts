/** What the check of a task says (L4). */
export interface Outcome {
  readonly passed: boolean
  /** What the check found in the cluster. */
  readonly observed: string
}

export const passes = (passed: boolean, observed: string): Outcome => ({ passed, observed })
