/** What the parts of the local clusters' manager share (L5). */
import type { Clock } from '#base/clock'
import type { Exec } from '#host/exec'

export interface LocalClusterDeps {
  readonly clock: Clock
  readonly exec: Exec
  /** SKIFF_HOME or its default. */
  readonly home: string
  readonly isRoot: boolean
  readonly platform: string
  /** Words that run this program: node and its entry. */
  readonly self: readonly string[]
  /** Ends the wait for another command that works on the cluster. Absent: only the time limit does. */
  readonly endsWaiting?: AbortSignal | undefined
}
