/**
 * Pass: an object keeps the claims of at most ten managers that update (L1); the oldest are united in one claim.
 * Upstream: apimachinery/pkg/util/managedfields/internal/capmanagers.go (v1.36).
 */
import type { Claim } from './claims.ts'
import { ascending } from './encodeClaims.ts'
import { type FieldSet, isEmpty, union } from './fieldSet.ts'

const maxUpdateManagers = 10
const bucketManager = 'ancient-changes'

/** Beyond ten updaters, the oldest claims of each version become one claim of `ancient-changes`. */
export function capUpdaters(claims: readonly Claim[]): readonly Claim[] {
  const updaters = claims.filter((claim) => claim.operation === 'Update')
  let excess = updaters.length - maxUpdateManagers
  if (excess <= 0) return claims
  const ofVersion = new Map<string, Claim[]>()
  for (const claim of [...updaters].sort((a, b) => ascending(a.time ?? '', b.time ?? '') || ascending(a.manager, b.manager))) {
    if (excess <= 0) break
    const older = ofVersion.get(claim.apiVersion)
    if (older === undefined) ofVersion.set(claim.apiVersion, [claim])
    else {
      older.push(claim)
      excess--
    }
  }
  const result = new Set(claims)
  for (const folded of ofVersion.values()) {
    if (folded.length < 2) continue
    for (const claim of folded) result.delete(claim)
    result.add(bucketOf(folded))
  }
  return [...result].filter((claim) => !isEmpty(claim.fields))
}

/** One claim for several of one version, given from the oldest to the newest. */
function bucketOf(folded: readonly Claim[]): Claim {
  const { apiVersion, time } = folded.at(-1) as Claim
  return { manager: bucketManager, operation: 'Update', apiVersion, subresource: '', time, fields: unionOf(folded.map(({ fields }) => fields)) }
}

/** By halves: a client may send thousands of entries, and each union copies the set that it adds to. */
function unionOf(sets: readonly FieldSet[]): FieldSet {
  if (sets.length < 2) return sets[0] ?? {}
  const middle = sets.length >> 1
  return union(unionOf(sets.slice(0, middle)), unionOf(sets.slice(middle)))
}
