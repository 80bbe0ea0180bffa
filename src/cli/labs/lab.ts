/**
 * An exercise on a live cluster (L4): what it creates, what the learner does, and how that is checked. One file a lab, one line in index.ts. The subjects are the
 * fourteen pages of the reference document on Kubernetes' internals.
 */
import type { Look } from './look.ts'
import type { Outcome } from './outcome.ts'

export interface Task {
  /** What to do, in one to three sentences. */
  readonly text: string
  /** Shell commands that do it, one a line. */
  readonly hint: string
  check(look: Look): Promise<Outcome>
}

export interface Lab {
  /** From 1. Its namespace is lab-NUMBER, with two digits. */
  readonly number: number
  readonly title: string
  /** What it shows, in one sentence. */
  readonly about: string
  /** Creates what the tasks begin with, in the lab's new namespace. */
  readonly start?: (look: Look) => Promise<void>
  readonly tasks: readonly Task[]
  /** Removes what the tasks make outside of the namespace. */
  readonly cleanUp?: (look: Look) => Promise<void>
}

export const namespaceOf = ({ number }: Pick<Lab, 'number'>) => `lab-${String(number).padStart(2, '0')}`
