/** Validation of resource names, requests and limits (L1). Upstream: pkg/apis/core/validation ValidateResourceRequirements (v1.36). */
import type { ResourceRequirements } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Label, isQualifiedName } from '#api/machinery/names'
import { negativeMessage } from '#api/machinery/objectMeta'
import { canonicalQuantity, compareQuantities, isQuantity, parseQuantity, quantityMilliValue, quantitySign, quantityValue } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { faults } from '../../rules.ts'

const hugePages = 'hugepages-'
const containerResources = ['cpu', 'ephemeral-storage', 'memory']
/** Names without a domain that some object may count. */
const standardResources = [
  ...containerResources,
  'configmaps',
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
  'requests.storage',
  'resourcequotas',
  'secrets',
  'services',
  'services.loadbalancers',
  'services.nodeports',
  'storage',
]

/** cpu, memory, storage, and anything under kubernetes.io: what upstream calls native. */
export function isNativeResource(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/')
}

/** Whether the name is of an extended resource: a device or the like, with a domain prefix. */
export function isExtendedResource(name: string): boolean {
  return !isNativeResource(name) && !name.startsWith('requests.') && isQualifiedName(`requests.${name}`).length === 0
}

export function validateResourceName(name: string, path: FieldPath): FieldError[] {
  const errors = faults(path, name, isQualifiedName(name))
  if (errors.length > 0) return errors
  if (!name.includes('/') && !standardResources.includes(name) && !/^(requests\.)?hugepages-/.test(name))
    return [fieldError.invalid(path, name, 'must be a standard resource type or fully qualified')]
  return []
}

/** A quantity that is not negative, and an integer for countable resources. */
export function validateQuantity(name: string, value: string | number, path: FieldPath): FieldError[] {
  if (!isQuantity(value))
    return [fieldError.invalid(path, value, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
  if (compareQuantities(value, 0) < 0) return [fieldError.invalid(path, canonicalQuantity(value), negativeMessage)]
  const whole = isExtendedResource(name) || ['pods', 'services', 'secrets', 'configmaps', 'persistentvolumeclaims'].includes(name)
  return whole && quantityMilliValue(value) % 1000 !== 0
    ? [fieldError.invalid(path, parseQuantity(value) && canonicalQuantity(value), 'must be an integer')]
    : []
}

/** Names, values, and requests against limits. `claims` are the names of the pod's resource claims. */
export function validateResourceRequirements(resources: ResourceRequirements | undefined, claims: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const { limits = {}, requests = {} } = resources ?? {}
  const errors: FieldError[] = []
  for (const [name, value] of Object.entries(limits)) errors.push(...entryFaults(name, value, path.child('limits').key(name)))
  const at = path.child('requests')
  for (const [name, value] of Object.entries(requests)) {
    const faulty = entryFaults(name, value, at.key(name))
    errors.push(...faulty)
    if (faulty.length > 0) continue
    const limit = ownValue(limits, name)
    const overcommit = isNativeResource(name) && !name.startsWith(hugePages)
    if (limit === undefined) {
      if (!overcommit) errors.push(fieldError.required(path.child('limits'), 'Limit must be set for non overcommitable resources'))
    } else if (isQuantity(limit)) {
      const order = compareQuantities(value, limit)
      if (!overcommit && order !== 0)
        errors.push(fieldError.invalid(at, canonicalQuantity(value), `must be equal to ${name} limit of ${canonicalQuantity(limit)}`))
      else if (order > 0)
        errors.push(fieldError.invalid(at, canonicalQuantity(value), `must be less than or equal to ${name} limit of ${canonicalQuantity(limit)}`))
    }
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  if (names.some((name) => name.startsWith(hugePages)) && !names.includes('cpu') && !names.includes('memory'))
    errors.push(fieldError.forbidden(path, 'HugePages require cpu or memory'))
  errors.push(...claimFaults(resources?.claims, claims, path.child('claims')))
  return errors
}

/** Each claim, or each request in it, is named once, and the pod has it. */
function claimFaults(claims: ResourceRequirements['claims'], known: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const seen = new Set<string>()
  const seenInPart = new Set<string>()
  const where = `must be one of the names in pod.spec.resourceClaims${known.size > 0 ? `: ${[...known].sort().join(', ')}` : ' which is empty'}`
  return (claims ?? []).flatMap(({ name, request }, i) => {
    const at = path.index(i)
    if (!name) return [fieldError.required(at)]
    const errors = request && !seen.has(name) ? faults(at.child('request'), request, isDns1123Label(request)) : []
    const key = request ? `${name}/${request}` : name
    const covered = !request && seenInPart.has(name)
    if (seen.has(name) || seen.has(key) || covered) errors.push(fieldError.duplicate(at, seen.has(name) ? name : key))
    seen.add(key)
    if (request) seenInPart.add(name)
    if (!known.has(name)) errors.push(fieldError.notFound(at, name, where))
    return errors
  })
}

/** Names and quantities of one list of a container's resources. */
function entryFaults(name: string, value: string, path: FieldPath): FieldError[] {
  const errors = validateContainerResourceName(name, path)
  const quantity = validateQuantity(name, value, path)
  if (quantity.length === 0 && name.startsWith(hugePages) && !isWholePages(name, value))
    quantity.push(fieldError.invalid(path, canonicalQuantity(value), `${canonicalQuantity(value)} is not positive integer multiple of ${name}`))
  return [...errors, ...quantity]
}

function isWholePages(name: string, value: string): boolean {
  const size = name.slice(hugePages.length)
  return isQuantity(size) && quantitySign(size) > 0 && quantityValue(value) % quantityValue(size) === 0
}

/** What a container may ask for. */
export function validateContainerResourceName(name: string, path: FieldPath): FieldError[] {
  const errors = validateResourceName(name, path)
  if (!name.includes('/')) {
    if (containerResources.includes(name) || name.startsWith(hugePages)) return errors
    return [...errors, fieldError.invalid(path, name, 'must be a standard resource for containers')]
  }
  const extended = isNativeResource(name) || isExtendedResource(name)
  return extended ? errors : [...errors, fieldError.invalid(path, name, "doesn't follow extended resource name standard")]
}
