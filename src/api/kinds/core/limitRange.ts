/** LimitRange (L1): bounds and defaults of what pods, containers and claims ask for. Upstream: pkg/registry/core/limitrange, ValidateLimitRange (v1.36). */
import type { LimitRange, LimitRangeItem } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isQualifiedName } from '#api/machinery/names'
import { canonicalQuantity, compareQuantities, isQuantity, quantityAsNumber } from '#api/machinery/quantity'
import { randomUid } from '#base/random'
import { nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { isNativeResource, validateContainerResourceName, validateQuantity, validateResourceName } from './pod/validateResources.ts'

const types = ['Pod', 'Container', 'PersistentVolumeClaim']
const lists = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const
type List = (typeof lists)[number]

export const limitRange = defineKind<LimitRange>({
  group: '',
  kind: 'LimitRange',
  generation: false,
  allowCreateOnUpdate: true,
  columns: [nameColumn, text('Created At', (obj) => obj.metadata.creationTimestamp ?? '')],
  defaults(obj) {
    for (const item of obj.spec?.limits ?? []) if (item.type === 'Container') fillItem(item)
  },
  prepareForCreate({ obj, context }) {
    obj.metadata.name ||= randomUid(context.random)
  },
  validate: ({ obj, path }) => rangeFaults(obj, path.child('spec', 'limits')),
  validateUpdate: ({ obj, path }) => rangeFaults(obj, path.child('spec', 'limits')),
})

/** Defaults fall from max to default limit, from default limit to default request, from min to default request. */
function fillItem(item: LimitRangeItem): void {
  item.default = { ...item.max, ...item.default }
  item.defaultRequest = { ...item.min, ...item.default, ...item.defaultRequest }
}

function rangeFaults(obj: LimitRange, path: FieldPath): FieldError[] {
  const seen = new Set<string>()
  return (obj.spec?.limits ?? []).flatMap((item, i) => {
    const at = path.index(i)
    // A type that is missing is an empty one.
    const type = item.type ?? ''
    const errors = typeFaults(type, at.child('type'))
    if (seen.has(type)) errors.push(fieldError.duplicate(at.child('type'), type))
    seen.add(type)
    for (const list of lists) errors.push(...listFaults(item, list, at.child(list)))
    if (item.type === 'PersistentVolumeClaim' && item.min?.storage === undefined && item.max?.storage === undefined)
      errors.push(fieldError.required(at.child('limits'), 'either minimum or maximum storage value is required, but neither was provided'))
    const names = new Set(lists.flatMap((list) => Object.keys(item[list] ?? {})))
    return [...errors, ...[...names].flatMap((name) => orderFaults(item, name, at))]
  })
}

function typeFaults(type: string, path: FieldPath): FieldError[] {
  const errors = faults(path, type, isQualifiedName(type))
  if (errors.length > 0 || type.includes('/') || types.includes(type)) return errors
  return [fieldError.invalid(path, type, 'must be a standard limit type or fully qualified')]
}

function listFaults(item: LimitRangeItem, list: List, path: FieldPath): FieldError[] {
  const entries = Object.entries(item[list] ?? {})
  if (item.type === 'Pod' && (list === 'default' || list === 'defaultRequest'))
    return entries.length > 0 ? [fieldError.forbidden(path, "may not be specified when `type` is 'Pod'")] : []
  const nameFaults = item.type === 'Pod' || item.type === 'Container' ? validateContainerResourceName : validateResourceName
  return entries.flatMap(([name, value]) => [...nameFaults(name, path.key(name)), ...(isQuantity(value) ? [] : validateQuantity(name, value, path.key(name)))])
}

/** min <= default request <= default <= max, and a ratio that they allow. */
function orderFaults(item: LimitRangeItem, name: string, path: FieldPath): FieldError[] {
  const amount = (list: List) => {
    const value = item.type === 'Pod' && (list === 'default' || list === 'defaultRequest') ? undefined : item[list]?.[name]
    return value !== undefined && isQuantity(value) ? canonicalQuantity(value) : undefined
  }
  const [min, max, limit, request, ratio] = [amount('min'), amount('max'), amount('default'), amount('defaultRequest'), amount('maxLimitRequestRatio')]
  const errors: FieldError[] = []
  const ordered = (list: List, shown: string | undefined, [low, lowName]: Named, [high, highName]: Named) => {
    if (low !== undefined && high !== undefined && compareQuantities(low, high) > 0)
      errors.push(fieldError.invalid(path.child(list).key(name), shown, `${lowName} value ${low} is greater than ${highName} value ${high}`))
  }
  ordered('min', min, [min, 'min'], [max, 'max'])
  ordered('defaultRequest', request, [min, 'min'], [request, 'default request'])
  ordered('defaultRequest', request, [request, 'default request'], [max, 'max'])
  ordered('defaultRequest', request, [request, 'default request'], [limit, 'default limit'])
  ordered('default', min, [min, 'min'], [limit, 'default'])
  ordered('default', max, [limit, 'default'], [max, 'max'])
  const at = path.child('maxLimitRequestRatio').key(name)
  if (ratio !== undefined && compareQuantities(ratio, 1) < 0) errors.push(fieldError.invalid(at, ratio, `ratio ${ratio} is less than 1`))
  if (ratio !== undefined && min !== undefined && max !== undefined) {
    const most = quantityAsNumber(max) / quantityAsNumber(min)
    if (quantityAsNumber(ratio) > most) errors.push(fieldError.invalid(at, ratio, `ratio ${ratio} is greater than max/min = ${most.toFixed(6)}`))
  }
  const overcommit = isNativeResource(name) && !name.startsWith('hugepages-')
  if (!overcommit && limit !== undefined && request !== undefined && compareQuantities(limit, request) !== 0) {
    const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${name}`
    errors.push(fieldError.invalid(path.child('defaultRequest').key(name), request, detail))
  }
  return errors
}

type Named = readonly [amount: string | undefined, name: string]
