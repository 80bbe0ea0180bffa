/**
 * Pass: the fields of an apply that other managers own and that it would change (L1).
 * Upstream: structured-merge-diff/v6/merge/conflict.go, apimachinery/pkg/util/managedfields/internal/conflict.go (v1.36).
 */
import { StatusError } from '../machinery/status.ts'
import type { Claim } from './claims.ts'
import type { Change } from './compareWrite.ts'
import { type FieldSet, intersection, isEmpty, pathsOf } from './fieldSet.ts'

export interface Conflict {
  readonly claim: Claim
  readonly fields: FieldSet
}

/** One conflict for each manager that owns fields which the apply changes. */
export function conflictsOf(others: readonly Claim[], { lossIn }: Pick<Change, 'lossIn'>): Conflict[] {
  return others
    .map((claim) => ({ claim, fields: intersection(claim.fields, lossIn(claim.apiVersion)?.changed ?? {}) }))
    .filter(({ fields }) => !isEmpty(fields))
}

/** Status Conflict with upstream's text, and a cause for each field. */
export function conflictError(conflicts: readonly Conflict[]): StatusError {
  const lines = conflicts
    .map(({ claim, fields }) => ({ manager: printManager(claim), paths: pathsOf(fields) }))
    .sort((a, b) => (a.manager < b.manager ? -1 : 1))
  const count = lines.reduce((sum, { paths }) => sum + paths.length, 0)
  const message =
    count === 1
      ? `Apply failed with 1 conflict: conflict with ${lines[0]?.manager}: ${lines[0]?.paths[0]}`
      : `Apply failed with ${count} conflicts: ${lines.flatMap(({ manager, paths }) => [`conflicts with ${manager}:`, ...paths.map((path) => `- ${path}`)]).join('\n')}`
  const causes = lines.flatMap(({ manager, paths }) => paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${manager}`, field })))
  return new StatusError('Conflict', message, { details: { causes } })
}

function printManager({ manager, operation, apiVersion, subresource }: Claim): string {
  const name = `${JSON.stringify(manager)}${subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`}`
  return operation === 'Update' ? `${name} using ${apiVersion}` : name
}
