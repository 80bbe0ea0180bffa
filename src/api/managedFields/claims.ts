/**
 * One entry of metadata.managedFields as the passes over it see it (L1): a manager, what it did, and the fields that it owns for it.
 * Upstream: apimachinery/pkg/util/managedfields/internal/managedfields.go, buildmanagerinfo.go (v1.36).
 */
import { formatTime } from '#base/time'
import type { FieldSet } from './fieldSet.ts'
import type { TrackedWrite } from './trackedWrite.ts'

/** One manager's claim. Immutable: changes make new claims. */
export interface Claim {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string | undefined
  readonly fields: FieldSet
}

/** The claim that a write makes. */
export function claimOf({ manager, apiVersion, subresource = '', nowMs }: TrackedWrite, operation: Claim['operation'], fields: FieldSet): Claim {
  return { manager, operation, apiVersion, subresource, time: claimTime(nowMs), fields }
}

/** In whole seconds, as the API shows times. */
export function claimTime(nowMs: number): string {
  return formatTime(Math.floor(nowMs / 1000) * 1000)
}

/** Whether two claims belong to one manager. A manager that applies stays the same in every API version, one that updates does not. */
export function sameManager(a: Claim, b: Claim): boolean {
  return a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource && (a.operation === 'Apply' || a.apiVersion === b.apiVersion)
}
