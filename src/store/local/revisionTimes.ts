/**
 * When revisions were made (L2), to a second: one mark a second at most, so that a busy store keeps few. Pure; the store forgets marks with the
 * history they belong to. A revision from before this process started has no time.
 */
import type { Revision } from '../store.ts'

interface Mark {
  readonly first: Revision
  readonly atMs: number
}

const resolutionMs = 1_000

export class RevisionTimes {
  /** In order of revision and time. */
  #marks: Mark[] = []

  /** Revisions are noted in order, each when it becomes durable. */
  note(revision: Revision, nowMs: number): void {
    const last = this.#marks.at(-1)
    if (last && nowMs - last.atMs < resolutionMs) return
    this.#marks.push({ first: revision, atMs: nowMs })
  }

  /** Milliseconds since the epoch, at most a second before the revision became durable. */
  of(revision: Revision): number | undefined {
    const at = this.#markOf(revision)
    return at < 0 ? undefined : (this.#marks[at] as Mark).atMs
  }

  /** Drops the marks of revisions before `revision`. */
  forgetBefore(revision: Revision): void {
    const at = this.#markOf(revision)
    if (at > 0) this.#marks = this.#marks.slice(at)
  }

  /** Index of the last mark at or below the revision; -1 for none. */
  #markOf(revision: Revision): number {
    let low = 0
    let high = this.#marks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#marks[middle] as Mark).first <= revision) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}
