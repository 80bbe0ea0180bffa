/**
 * Pass: claims become the entries of metadata.managedFields, in upstream's order (L1).
 * Upstream: apimachinery/pkg/util/managedfields/internal/managedfields.go (v1.36).
 */
import type { ManagedFieldsEntry } from '../machinery/meta.ts'
import type { Claim } from './claims.ts'

/** Claims of Apply first, then by time, manager, version and subresource. */
export function encodeClaims(claims: readonly Claim[]): ManagedFieldsEntry[] {
  return [...claims]
    .sort(
      (a, b) =>
        ascending(a.operation, b.operation) ||
        ascending(a.time ?? '', b.time ?? '') ||
        ascending(a.manager, b.manager) ||
        ascending(a.apiVersion, b.apiVersion) ||
        ascending(a.subresource, b.subresource),
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

export function ascending(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
