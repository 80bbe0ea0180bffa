/**
 * Whether an indexed job has succeeded enough by its successPolicy (L3). Pure. Upstream: pkg/controller/job/success_policy.go (v1.36).
 */
import type { Job } from '#api/gen/types/batch.v1'
import type { Frozen } from '#api/machinery/meta'
import { IndexSet } from './indexes.ts'

/** @returns which rule is met, in words; undefined when none is */
export function matchSuccessPolicy(job: Frozen<Job>, succeeded: IndexSet): string | undefined {
  if (succeeded.size === 0) return undefined
  const rule = (job.spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && succeeded.size >= succeededCount
    const wanted = IndexSet.parse(succeededIndexes, job.spec.completions ?? 0)
    const met = wanted.countShared(succeeded)
    return wanted.size > 0 && (met === wanted.size || (succeededCount !== undefined && met >= succeededCount))
  })
  return rule < 0 ? undefined : `Matched rules at index ${rule}`
}
