/** The part of the trace that components write (L2): a check that costs next to nothing without a reader, and a note. */
import type { ObjectEvent } from '#api/debug/traces'

export interface ObjectTrace {
  /** Whether a reader wants to know what is done about this object. */
  follows(resource: string, namespace: string, name: string): boolean
  /** Milliseconds since the epoch, with a fraction. */
  now(): number
  note(event: ObjectEvent): void
  /** What was noted about these objects, by time. */
  events(objects: ReadonlySet<string>): readonly ObjectEvent[]
}
