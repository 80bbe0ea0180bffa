/**
 * Pass: the fields that an update changed are added to its manager's claim (L1).
 * Upstream: the Update step of structured-merge-diff/v6/merge/update.go (v1.36).
 */
import { type Claim, claimOf, sameManager } from './claims.ts'
import type { Comparison } from './compareObjects.ts'
import { difference, isEmpty, union } from './fieldSet.ts'
import type { TrackedWrite } from './trackedWrite.ts'

/**
 * @param left the claims after dropFields
 * @param before the claims before dropFields; the manager's own claim loses only removed fields
 */
export function addFields(left: readonly Claim[], before: readonly Claim[], write: TrackedWrite, { changed, removed }: Comparison): readonly Claim[] {
  if (isEmpty(changed)) return left
  const self = claimOf(write.manager === '' ? { ...write, manager: 'unknown' } : write, 'Update', changed)
  const previous = before.find((claim) => sameManager(claim, self))
  const kept = previous === undefined ? {} : difference(previous.fields, removed)
  const claim = { ...self, fields: union(kept, changed) }
  const at = left.findIndex((one) => sameManager(one, self))
  return at >= 0 ? left.with(at, claim) : [...left, claim]
}
