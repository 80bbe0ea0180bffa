/** ResourceQuota (L1). Upstream: pkg/registry/core/resourcequota, printResourceQuota (v1.36). */
import type { ResourceQuota } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { immutableMessage } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { validateQuotaAmounts, validateQuotaSpec } from './validateQuota.ts'

export const resourceQuota = defineKind<ResourceQuota>({
  group: '',
  kind: 'ResourceQuota',
  generation: false,
  columns: [nameColumn, text('Request', (obj) => usageText(obj, false)), text('Limit', (obj) => usageText(obj, true)), ageColumn],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => validateQuotaSpec(obj.spec, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [...validateQuotaSpec(obj.spec, path.child('spec')), ...scopeChange(obj, old, path.child('spec', 'scopes'))],
  status: statusStrategy<ResourceQuota>({
    validateUpdate: ({ obj, path }) => (['hard', 'used'] as const).flatMap((list) => validateQuotaAmounts(obj.status[list], path.child('status', list))),
  }),
})

function usageText({ status }: Frozen<ResourceQuota>, limits: boolean): string {
  return Object.keys(status?.hard ?? {})
    .filter((name) => name.startsWith('limits.') === limits)
    .sort()
    .map((name) => `${name}: ${status?.used?.[name] ?? '0'}/${status?.hard?.[name]}`)
    .join(', ')
}

function scopeChange(obj: ResourceQuota, old: Frozen<ResourceQuota>, path: FieldPath): FieldError[] {
  const sorted = (scopes: readonly string[] | undefined) => [...new Set(scopes)].sort().join()
  return sorted(obj.spec.scopes) === sorted(old.spec.scopes) ? [] : [fieldError.invalid(path, obj.spec.scopes ?? null, immutableMessage)]
}
