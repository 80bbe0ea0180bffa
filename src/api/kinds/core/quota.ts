/** ResourceQuota and LimitRange (L1). Upstream: pkg/registry/core/{resourcequota,limitrange}, pkg/apis/core/validation (v1.36). */
import type { LimitRange, LimitRangeItem, ResourceQuota } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities, isQuantity } from '#api/machinery/quantity'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { validateQuantity } from './pod/validateResources.ts'

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
  validate: ({ obj, path }) => quantitiesFaults(obj.spec.hard, path.child('spec', 'hard')),
  validateUpdate: ({ obj, path }) => quantitiesFaults(obj.spec.hard, path.child('spec', 'hard')),
  status: statusStrategy<ResourceQuota>(),
})

export const limitRange = defineKind<LimitRange>({
  group: '',
  kind: 'LimitRange',
  generation: false,
  columns: [nameColumn, text('Created At', (obj) => obj.metadata.creationTimestamp ?? '')],
  defaults(obj) {
    for (const item of obj.spec?.limits ?? []) if (item.type === 'Container') fillItem(item)
  },
  validate: ({ obj, path }) => rangeFaults(obj, path.child('spec', 'limits')),
  validateUpdate: ({ obj, path }) => rangeFaults(obj, path.child('spec', 'limits')),
})

/** Defaults fall from max to default limit, from default limit to default request, from min to default request. */
function fillItem(item: LimitRangeItem): void {
  item.default = { ...item.max, ...item.default }
  item.defaultRequest = { ...item.min, ...item.default, ...item.defaultRequest }
}

function usageText({ status }: Frozen<ResourceQuota>, limits: boolean): string {
  return Object.keys(status?.hard ?? {})
    .filter((name) => name.startsWith('limits.') === limits)
    .sort()
    .map((name) => `${name}: ${status?.used?.[name] ?? '0'}/${status?.hard?.[name]}`)
    .join(', ')
}

function quantitiesFaults(list: Readonly<Record<string, string>> | undefined, path: FieldPath): FieldError[] {
  return Object.entries(list ?? {}).flatMap(([name, value]) => validateQuantity(name, value, path.key(name)))
}

function rangeFaults(obj: LimitRange, path: FieldPath): FieldError[] {
  return (obj.spec?.limits ?? []).flatMap((item, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    for (const list of ['max', 'min', 'default', 'defaultRequest'] as const) errors.push(...quantitiesFaults(item[list], at.child(list)))
    if (errors.length > 0) return errors
    for (const name of new Set([...Object.keys(item.min ?? {}), ...Object.keys(item.max ?? {}), ...Object.keys(item.default ?? {})])) {
      const [min, max, limit, request] = [item.min?.[name], item.max?.[name], item.default?.[name], item.defaultRequest?.[name]]
      const above = (low: string | undefined, high: string | undefined) =>
        low !== undefined && high !== undefined && isQuantity(low) && compareQuantities(low, high) > 0
      if (above(min, max)) errors.push(fieldError.invalid(at.child('min').key(name), min, `min value ${min} is greater than max value ${max}`))
      if (above(request, max))
        errors.push(fieldError.invalid(at.child('defaultRequest').key(name), request, `default request value ${request} is greater than max value ${max}`))
      if (above(limit, max)) errors.push(fieldError.invalid(at.child('default').key(name), limit, `default value ${limit} is greater than max value ${max}`))
      if (above(request, limit))
        errors.push(
          fieldError.invalid(at.child('defaultRequest').key(name), request, `default request value ${request} is greater than default limit value ${limit}`),
        )
    }
    return errors
  })
}
