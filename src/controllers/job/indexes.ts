/**
 * Sets of completion indexes in their written form, `0-2,5` (L3). Pure. Upstream: pkg/controller/job/indexed_job_utils.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export const completionIndexAnnotation = 'batch.kubernetes.io/job-completion-index'

/** First and last index, both included. */
export type Interval = readonly [first: number, last: number]

export const isIndexed = (job: Frozen<Job>): boolean => job.spec.completionMode === 'Indexed'

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

export function parseIndexes(text: string | undefined, completions: number): Set<number> {
  const indexes = new Set<number>()
  for (const [first, last] of parseIntervals(text, completions)) {
    for (let index = first; index <= last; index++) indexes.add(index)
  }
  return indexes
}

export function formatIndexes(indexes: ReadonlySet<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b)
  const runs: [number, number][] = []
  for (const index of sorted) {
    const run = runs.at(-1)
    if (run && run[1] === index - 1) run[1] = index
    else runs.push([index, index])
  }
  // Two neighbours are written as two numbers, as upstream does.
  return runs.map(([first, last]) => (first === last ? String(first) : last === first + 1 ? `${first},${last}` : `${first}-${last}`)).join(',')
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
