/**
 * Pass: every manager loses the fields that the write changed or removed (L1). Claims that own nothing any more are dropped, and
 * so are claims whose version is not served any more.
 * Upstream: structured-merge-diff/v6/merge/update.go (v1.36).
 */
import type { Claim } from './claims.ts'
import type { Change } from './compareWrite.ts'
import { difference, isEmpty } from './fieldSet.ts'

export function dropFields(claims: readonly Claim[], { lossIn }: Pick<Change, 'lossIn'>): Claim[] {
  const next: Claim[] = []
  for (const claim of claims) {
    const loss = lossIn(claim.apiVersion)
    if (!loss) continue
    const fields = isEmpty(loss.gone) ? claim.fields : difference(claim.fields, loss.gone)
    if (!isEmpty(fields)) next.push(fields === claim.fields ? claim : { ...claim, fields })
  }
  return next
}
