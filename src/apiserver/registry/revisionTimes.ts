/**
 * Which revision was the newest at which time (L3), to a second. Pure. The cacher notes every revision that it reaches: one mark a second for the last hour, one
 * a minute before. Compaction drops the marks of the revisions that it forgets.
 */
import type { Revision } from '#store/store'

export interface RevisionMark {
  /** Beginning of a second, in milliseconds since the epoch. */
  readonly atMs: number
  /** The newest revision at the end of that second. */
  readonly revision: Revision
}

const secondMs = 1_000
const minuteMs = 60_000
const fineMs = 3_600_000
/** Marks that are added between two thinnings. */
const thinEvery = fineMs / secondMs
/** About a month of minutes. */
export const mostMarks = 45_000

export class RevisionTimes {
  /** In order of time and revision. */
  #marks: RevisionMark[] = []
  /** Revisions from here on have a time: the first mark may stand for several. */
  #first: Revision = Number.POSITIVE_INFINITY
  #thinAt = 2 * thinEvery

  note(revision: Revision, nowMs: number): void {
    const last = this.#marks.at(-1)
    if (last && revision <= last.revision) return
    const atMs = Math.floor(nowMs / secondMs) * secondMs
    this.#first = Math.min(this.#first, revision)
    append(this.#marks, { atMs, revision })
    if (this.#marks.length >= this.#thinAt) this.#thin(atMs)
  }

  /**
   * Adds marks from before this process, in the order of their revisions; those that do not precede the known marks are left out.
   * @param oldest the first revision that has the time of the first mark; absent: the one of the mark
   */
  restore(marks: readonly RevisionMark[], oldest?: Revision): void {
    const first = this.#marks[0]
    const older: RevisionMark[] = []
    for (const mark of marks) if (!first || (mark.atMs < first.atMs && mark.revision < first.revision)) append(older, mark)
    this.#marks = [...older.slice(-mostMarks), ...this.#marks]
    if (older.length > 0) this.#first = oldest ?? this.#marks[0]?.revision ?? this.#first
    this.#thinAt = this.#marks.length + thinEvery
  }

  /** The newest revision at a time; undefined when the time is before all marks. */
  at(timeMs: number): Revision | undefined {
    return this.#marks[this.#count(({ atMs }) => atMs <= timeMs) - 1]?.revision
  }

  /** Milliseconds since the epoch at which a revision was made; undefined when it is older than all marks or newer. */
  of(revision: Revision): number | undefined {
    if (revision < this.#first) return undefined
    return this.#marks[this.#count((mark) => mark.revision < revision)]?.atMs
  }

  /** The oldest revision that was noted or restored and is not forgotten; undefined when there is none. It may have no mark of its own. */
  get first(): Revision | undefined {
    return Number.isFinite(this.#first) ? this.#first : undefined
  }

  get oldest(): RevisionMark | undefined {
    return this.#marks[0]
  }

  /** The mark at a share (0 to 1) of the known marks, counted from the oldest. */
  atShare(share: number): RevisionMark | undefined {
    return this.#marks[Math.min(this.#marks.length - 1, Math.ceil(this.#marks.length * share))]
  }

  forgetBefore(revision: Revision): void {
    const gone = this.#count((mark) => mark.revision < revision)
    if (gone > 0) this.#marks = this.#marks.slice(gone)
    this.#first = Math.max(this.#first, revision)
  }

  #thin(nowMs: number): void {
    const fineFrom = nowMs - fineMs
    const minuteOf = (mark: RevisionMark | undefined) => Math.floor((mark?.atMs ?? 0) / minuteMs)
    // The last mark of a minute has the state at its end.
    const kept = this.#marks.filter((mark, at) => mark.atMs >= fineFrom || minuteOf(mark) !== minuteOf(this.#marks[at + 1]))
    this.#marks = kept.slice(-mostMarks)
    if (kept.length > mostMarks) this.#first = this.#marks[0]?.revision ?? this.#first
    this.#thinAt = this.#marks.length + thinEvery
  }

  /** How many leading marks satisfy a condition that holds for a beginning of the list. */
  #count(holds: (mark: RevisionMark) => boolean): number {
    let low = 0
    let high = this.#marks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (holds(this.#marks[middle] as RevisionMark)) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** A clock that was set back, or another server's that is behind, makes the later times of older marks untrue: this mark replaces them. */
function append(marks: RevisionMark[], mark: RevisionMark): void {
  while ((marks.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= mark.atMs) marks.pop()
  marks.push(mark)
}
