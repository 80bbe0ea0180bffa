/**
 * metadata.managedFields as a list of managers with their sets (L1): identity, order, times and the cap on managers.
 * Upstream: apimachinery/pkg/util/managedfields/internal (v1.36): managedfields.go, capmanagers.go, buildmanagerinfo.go.
 */
import { formatTime } from '#base/time'
import type { ManagedFieldsEntry } from '../machinery/meta.ts'
import { type FieldSet, isEmpty, union } from './fieldSet.ts'

/** One manager's claim. Immutable: changes make new claims. */
export interface Claim {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string | undefined
  readonly fields: FieldSet
}

const maxUpdateManagers = 10
const bucketManager = 'ancient-changes'

/** Who it is: appliers keep their identity across API versions, updaters do not. */
export function sameManager(a: Claim, b: Claim): boolean {
  return a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource && (a.operation === 'Apply' || a.apiVersion === b.apiVersion)
}

/** Undefined when the entries are not what the server would write: then they are ignored. */
export function readEntries(entries: readonly DeepEntry[] | undefined): readonly Claim[] | undefined {
  const claims: Claim[] = []
  for (const entry of entries ?? []) {
    if (entry.operation !== 'Apply' && entry.operation !== 'Update') return undefined
    if (entry.fieldsType !== undefined && entry.fieldsType !== 'FieldsV1') return undefined
    claims.push({
      manager: entry.manager ?? '',
      operation: entry.operation,
      apiVersion: entry.apiVersion ?? '',
      subresource: entry.subresource ?? '',
      time: entry.time,
      fields: (entry.fieldsV1 ?? {}) as FieldSet,
    })
  }
  return claims
}

/** Why the server cannot read the entries; undefined when it can. Upstream: managedfields.ValidateManagedFields. */
export function managedFieldsFault(entries: readonly DeepEntry[] | undefined): string | undefined {
  for (const [i, { operation, apiVersion, fieldsType }] of (entries ?? []).entries()) {
    if (operation !== 'Apply' && operation !== 'Update') return 'operation must be `Apply` or `Update`'
    if (!apiVersion) return 'apiVersion must not be empty'
    if (!fieldsType) return `missing fieldsType in managed fields entry ${i}`
    if (fieldsType !== 'FieldsV1') return `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${i}`
  }
  return undefined
}

type DeepEntry = { readonly [K in keyof ManagedFieldsEntry]: K extends 'fieldsV1' ? unknown : ManagedFieldsEntry[K] }

/** In upstream's order: appliers first, then by time, manager, version and subresource. */
export function writeEntries(claims: readonly Claim[]): ManagedFieldsEntry[] {
  return [...claims]
    .sort(
      (a, b) =>
        compare(a.operation, b.operation) ||
        compare(a.time ?? '', b.time ?? '') ||
        compare(a.manager, b.manager) ||
        compare(a.apiVersion, b.apiVersion) ||
        compare(a.subresource, b.subresource),
    )
    .map(({ manager, operation, apiVersion, subresource, time, fields }) => ({
      manager,
      operation,
      apiVersion,
      ...(time === undefined ? {} : { time }),
      fieldsType: 'FieldsV1',
      fieldsV1: fields as Record<string, unknown>,
      ...(subresource === '' ? {} : { subresource }),
    }))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function timeOf(nowMs: number): string {
  return formatTime(Math.floor(nowMs / 1000) * 1000)
}

/** Beyond ten updaters the oldest of a version are folded into one, `ancient-changes`. */
export function capUpdateManagers(claims: readonly Claim[]): readonly Claim[] {
  const updaters = claims.filter((claim) => claim.operation === 'Update')
  let excess = updaters.length - maxUpdateManagers
  if (excess <= 0) return claims
  const ofVersion = new Map<string, Claim[]>()
  for (const claim of [...updaters].sort((a, b) => compare(a.time ?? '', b.time ?? '') || compare(a.manager, b.manager))) {
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

/** One claim for all of these, of one version and from the oldest to the newest. */
function bucketOf(folded: readonly Claim[]): Claim {
  const { apiVersion, time } = folded.at(-1) as Claim
  return { manager: bucketManager, operation: 'Update', apiVersion, subresource: '', time, fields: unionOf(folded.map(({ fields }) => fields)) }
}

/** By halves: a client may send thousands of entries, and each union copies what it adds to. */
function unionOf(sets: readonly FieldSet[]): FieldSet {
  if (sets.length < 2) return sets[0] ?? {}
  const middle = sets.length >> 1
  return union(unionOf(sets.slice(0, middle)), unionOf(sets.slice(middle)))
}
