/**
 * Whether an indexed job has succeeded enough by its successPolicy (L3). Pure. Upstream: pkg/controller/job/success_policy.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Frozen } from '#api/machinery/meta'
import { parseIntervals } from './indexes.ts'

/** @returns which rule is met, in words; undefined when none is */
export function matchSuccessPolicy(job: Frozen<Job>, succeeded: ReadonlySet<number>): string | undefined {
  if (succeeded.size === 0) return undefined
  const rule = (job.spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && succeeded.size >= succeededCount
    const wanted = parseIntervals(succeededIndexes, job.spec.completions ?? 0)
    const total = wanted.reduce((sum, [first, last]) => sum + last - first + 1, 0)
    // A rule may name far more indexes than have succeeded: count the latter.
    const met = [...succeeded].filter((index) => wanted.some(([first, last]) => index >= first && index <= last)).length
    return total > 0 && (met === total || (succeededCount !== undefined && met >= succeededCount))
  })
  return rule < 0 ? undefined : `Matched rules at index ${rule}`
}
