/**
 * Sets of completion indexes and their written form, `0-2,5` (L3). Pure. A set is kept as intervals: who may write a Job's status can name two
 * thousand million indexes in a dozen letters. Upstream: pkg/controller/job/indexed_job_utils.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export const completionIndexAnnotation = 'batch.kubernetes.io/job-completion-index'

/** First and last index, both included. */
export type Interval = readonly [first: number, last: number]

export const isIndexed = (job: Frozen<Job>): boolean => job.spec.completionMode === 'Indexed'

/** A set of indexes that takes room by its intervals, not by its indexes. */
export class IndexSet {
  /** In order, without overlaps or neighbours. */
  readonly intervals: readonly Interval[]
  readonly size: number

  /** In any order; they may overlap. */
  constructor(intervals: readonly Interval[]) {
    const merged: [number, number][] = []
    for (const [first, last] of [...intervals].sort(([a], [b]) => a - b)) {
      const before = merged.at(-1)
      if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last)
      else merged.push([first, last])
    }
    this.intervals = merged
    this.size = merged.reduce((sum, [first, last]) => sum + last - first + 1, 0)
  }

  static of(indexes: Iterable<number>): IndexSet {
    return new IndexSet(Array.from(indexes, (index) => [index, index] as const))
  }

  /** The set of a text, cut off at `completions`, with more indexes. */
  static parse(text: string | undefined, completions: number, more: readonly number[] = []): IndexSet {
    return new IndexSet([...parseIntervals(text, completions), ...more.map((index): Interval => [index, index])])
  }

  has(index: number): boolean {
    return this.#around(index) !== undefined
  }

  /** The lowest index from `index` on that is not in the set. */
  nextOutside(index: number): number {
    const interval = this.#around(index)
    return interval ? interval[1] + 1 : index
  }

  /** How many indexes are in both sets. */
  countShared(other: IndexSet): number {
    let shared = 0
    for (let i = 0, j = 0; i < this.intervals.length && j < other.intervals.length; ) {
      const [[first, last], [otherFirst, otherLast]] = [this.intervals[i] as Interval, other.intervals[j] as Interval]
      shared += Math.max(0, Math.min(last, otherLast) - Math.max(first, otherFirst) + 1)
      if (last < otherLast) i++
      else j++
    }
    return shared
  }

  #around(index: number): Interval | undefined {
    let low = 0
    let high = this.intervals.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const interval = this.intervals[middle] as Interval
      if (index < interval[0]) high = middle - 1
      else if (index > interval[1]) low = middle + 1
      else return interval
    }
    return undefined
  }
}

/** The intervals of a text, cut off at `completions`; what is no interval is ignored, as upstream does. */
export function parseIntervals(text: string | undefined, completions: number): Interval[] {
  return (text ? text.split(',') : []).flatMap((part): Interval[] => {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part)
    if (!match) return []
    const first = Number(match[1])
    const last = Math.min(Number(match[2] ?? match[1]), completions - 1)
    return first <= last ? [[first, last]] : []
  })
}

export function formatIndexes({ intervals }: IndexSet): string {
  // Two neighbours are written as two numbers, as upstream does.
  return intervals.map(([first, last]) => (first === last ? String(first) : last === first + 1 ? `${first},${last}` : `${first}-${last}`)).join(',')
}

export function completionIndex(object: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined } }): number | undefined {
  const text = object.metadata.annotations?.[completionIndexAnnotation]
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/** The pod's index if the job still has it: a job may have been made smaller. */
export function validIndex(job: Frozen<Job>, pod: Frozen<Pod>): number | undefined {
  const index = completionIndex(pod)
  return index !== undefined && index < (job.spec.completions ?? 0) ? index : undefined
}
