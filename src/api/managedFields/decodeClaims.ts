/**
 * Pass: the entries of metadata.managedFields become claims (L1). Sets need no decoding: FieldSet is the form of FieldsV1.
 * Upstream: apimachinery/pkg/util/managedfields/internal/managedfields.go, fieldmanager.go, skipnonapplied.go (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { KubeObject, ManagedFieldsEntry } from '../machinery/meta.ts'
import { type Claim, claimTime } from './claims.ts'
import { compareWhole } from './compareWrite.ts'
import { type FieldSet, isEmpty } from './fieldSet.ts'
import type { TrackedWrite } from './trackedWrite.ts'

export type Entry = { readonly [K in keyof ManagedFieldsEntry]: K extends 'fieldsV1' ? unknown : ManagedFieldsEntry[K] }

/** Undefined when the server would not write such entries: then they are ignored. */
export function decodeClaims(entries: readonly Entry[] | undefined): readonly Claim[] | undefined {
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

/** The claims that an update starts from. A client may rewrite managedFields, or reset them with one empty entry; leaving them out keeps the live ones. */
export function claimsBeforeUpdate(old: DeepReadonly<KubeObject> | undefined, updated: KubeObject, subresource = ''): readonly Claim[] {
  const live = decodeClaims(old?.metadata.managedFields) ?? []
  const requested = updated.metadata.managedFields
  if (subresource !== '' || requested === undefined || requested.length === 0) return live
  if (requested.length === 1 && Object.keys(requested[0] ?? {}).length === 0) return []
  return decodeClaims(requested) ?? live
}

/** The claims that an apply starts from. A live object that was never tracked gets one claim for everything in it. */
export function claimsBeforeApply(live: DeepReadonly<KubeObject> | undefined, write: TrackedWrite): readonly Claim[] {
  if (live === undefined) return []
  const claims = decodeClaims(live.metadata.managedFields) ?? []
  if (claims.length > 0) return claims
  const fields = compareWhole(live, write)
  if (isEmpty(fields)) return []
  return [{ manager: 'before-first-apply', operation: 'Update', apiVersion: live.apiVersion, subresource: '', time: claimTime(write.nowMs), fields }]
}

/** Why the server cannot read the entries; undefined when it can. Upstream: managedfields.ValidateManagedFields. */
export function managedFieldsFault(entries: readonly Entry[] | undefined): string | undefined {
  for (const [i, { operation, apiVersion, fieldsType }] of (entries ?? []).entries()) {
    if (operation !== 'Apply' && operation !== 'Update') return 'operation must be `Apply` or `Update`'
    if (!apiVersion) return 'apiVersion must not be empty'
    if (!fieldsType) return `missing fieldsType in managed fields entry ${i}`
    if (fieldsType !== 'FieldsV1') return `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${i}`
  }
  return undefined
}
