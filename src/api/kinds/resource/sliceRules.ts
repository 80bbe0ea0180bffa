/** Validation of ResourceSlices (L1). Upstream: pkg/apis/resource/validation (v1.36). */
import type { Device, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption, ResourceSlice } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Subdomain } from '#api/machinery/names'
import { utf8Length } from '../core/data.ts'
import { faults } from '../rules.ts'
import { capacityFaults } from './capacityRules.ts'
import {
  bindingConditionFaults,
  driverFaults,
  labelFaults,
  listFaults,
  mapFaults,
  nodeSelectorFaults,
  poolNameFaults,
  qualifiedNameFaults,
  setFaults,
  taintFaults,
} from './deviceRules.ts'

const maxDevices = 128
const maxDevicesWithAdvancedFeatures = 64
/** Length limit of a name with its domain. */
const maxQualifiedName = 63 + 1 + 32
const maxCounterName = 63
const maxAttributesAndCapacities = 32
const maxAttributeLength = 64
const maxTaints = 16
const maxCounterSets = 8
const maxCounters = 32
const maxConsumedSets = 2
/** The attributes that hold several values; their gate, DRAListTypeAttributes, is off by default. */
export const listAttributes = ['bools', 'ints', 'strings', 'versions'] as const
const version =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$/

/** @param old of an update: taints that it had already may stay */
export function validateSlice({ spec }: ResourceSlice, old: Frozen<ResourceSlice> | undefined, path: FieldPath): FieldError[] {
  const pool = path.child('pool')
  const errors = [...driverFaults(spec.driver, path.child('driver')), ...poolNameFaults(spec.pool.name, pool.child('name'))]
  if (!(spec.pool.resourceSliceCount > 0))
    errors.push(fieldError.invalid(pool.child('resourceSliceCount'), spec.pool.resourceSliceCount, 'must be greater than zero'))
  if (spec.pool.generation < 0) errors.push(fieldError.invalid(pool.child('generation'), spec.pool.generation, 'must be greater than or equal to zero'))
  errors.push(...placeFaults(spec, path))
  if (spec.sharedCounters && spec.devices) errors.push(fieldError.invalid(path, '', 'only one of `sharedCounters` or `devices` is allowed'))
  const before = new Map((old?.spec.devices ?? []).map((device) => [device.name, device]))
  const check = (device: Device, at: FieldPath) => deviceFaults(device, before.get(device.name), spec.perDeviceNodeSelection === true, at)
  const max = spec.devices?.some(usesAdvancedFeatures) ? maxDevicesWithAdvancedFeatures : maxDevices
  errors.push(...setFaults(spec.devices, max, check, (device) => device.name, path.child('devices')))
  errors.push(
    ...setFaults(
      spec.sharedCounters,
      maxCounterSets,
      (set, at) => [...counterNameFaults(set.name, at.child('name')), ...countersFaults(set.counters, at.child('counters'))],
      (set) => set.name,
      path.child('sharedCounters'),
    ),
  )
  return errors
}

/** Such devices cost the scheduler more. */
function usesAdvancedFeatures({ taints, consumesCounters, attributes }: Device): boolean {
  if (taints?.length || consumesCounters?.length) return true
  return Object.values(attributes ?? {}).some((attribute) => listAttributes.some((list) => attribute[list] !== undefined))
}

function counterNameFaults(name: string, path: FieldPath): FieldError[] {
  return name ? labelFaults(name, path) : [fieldError.required(path)]
}

/** Exactly one field says which nodes can use the devices. */
function placeFaults(spec: ResourceSlice['spec'], path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const said: string[] = []
  if (spec.nodeName) errors.push(...faults(path.child('nodeName'), spec.nodeName, isDns1123Subdomain(spec.nodeName)))
  else if (spec.nodeName === '') errors.push(fieldError.invalid(path.child('nodeName'), '', 'must be either unset or set to a non-empty string'))
  if (spec.nodeName) said.push('`nodeName`')
  if (spec.nodeSelector) {
    said.push('`nodeSelector`')
    const terms = spec.nodeSelector.nodeSelectorTerms ?? []
    errors.push(...nodeSelectorFaults(spec.nodeSelector, path.child('nodeSelector')))
    if (terms.length !== 1) errors.push(fieldError.invalid(path.child('nodeSelector', 'nodeSelectorTerms'), terms, 'must have exactly one node selector term'))
  }
  for (const field of ['allNodes', 'perDeviceNodeSelection'] as const) {
    if (spec[field]) said.push(`\`${field}\``)
    else if (spec[field] === false) errors.push(fieldError.invalid(path.child(field), false, 'must be either unset or set to true'))
  }
  const one = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required'
  if (said.length === 0) errors.push(fieldError.required(path, one))
  if (said.length > 1) errors.push(fieldError.invalid(path, `{${said.join(', ')}}`, `${one}, but multiple fields are set`))
  return errors
}

function deviceFaults(device: Device, old: Frozen<Device> | undefined, perDevice: boolean, path: FieldPath): FieldError[] {
  const errors = labelFaults(device.name, path.child('name'))
  const total = Object.keys(device.attributes ?? {}).length + Object.keys(device.capacity ?? {}).length
  if (total > maxAttributesAndCapacities)
    errors.push(fieldError.invalid(path, total, `the total number of attributes and capacities must not exceed ${maxAttributesAndCapacities}`))
  const attribute = (name: string, value: DeviceAttribute, at: FieldPath) => [...qualifiedNameFaults(name, at), ...attributeFaults(value, at)]
  errors.push(...mapFaults(device.attributes, maxAttributesAndCapacities, maxQualifiedName, attribute, path.child('attributes')))
  const shared = device.allowMultipleAllocations === true
  const capacity = (name: string, value: DeviceCapacity, at: FieldPath) => [...qualifiedNameFaults(name, at), ...capacityFaults(value, shared, at)]
  errors.push(...mapFaults(device.capacity, maxAttributesAndCapacities, maxQualifiedName, capacity, path.child('capacity')))
  if (!old || !semanticEqual(old.taints, device.taints))
    errors.push(...listFaults(device.taints, maxTaints, (taint, at) => taintFaults(taint, at), path.child('taints')))
  errors.push(...consumptionFaults(device.consumesCounters, path.child('consumesCounters')))
  errors.push(...devicePlaceFaults(device, perDevice, path))
  return [...errors, ...bindingConditionFaults(device.bindingConditions, device.bindingFailureConditions, path)]
}

function devicePlaceFaults(device: Device, perDevice: boolean, path: FieldPath): FieldError[] {
  const given = (['nodeName', 'nodeSelector', 'allNodes'] as const).filter((field) => device[field] !== undefined)
  if (!perDevice) {
    const why = '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
    return given.length > 0 ? [fieldError.invalid(path, null, why)] : []
  }
  const errors: FieldError[] = []
  const name = path.child('nodeName')
  if (device.nodeName === '') errors.push(fieldError.invalid(name, '', 'must not be empty'))
  else if (device.nodeName !== undefined) errors.push(...faults(name, device.nodeName, isDns1123Subdomain(device.nodeName)))
  if (device.nodeSelector) errors.push(...nodeSelectorFaults(device.nodeSelector, path.child('nodeSelector')))
  if (device.allNodes === false) errors.push(fieldError.invalid(path.child('allNodes'), false, 'must be either unset or set to true'))
  const said = given.filter((field) => device[field])
  const one = 'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
  if (said.length === 0) errors.push(fieldError.required(path, one))
  if (said.length > 1) errors.push(fieldError.invalid(path, `{${said.map((field) => `\`${field}\``).join(', ')}}`, one))
  return errors
}

function attributeFaults(attribute: DeviceAttribute, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const given = (['bool', 'int', 'string', 'version', ...listAttributes] as const).filter((field) => attribute[field] !== undefined)
  if (attribute.version !== undefined && !version.test(attribute.version))
    errors.push(fieldError.invalid(path.child('version'), attribute.version, 'must be a string compatible with semver.org spec 2.0.0'))
  for (const field of ['string', 'version'] as const)
    if (utf8Length(attribute[field] ?? '') > maxAttributeLength) errors.push(fieldError.tooLong(path.child(field), maxAttributeLength))
  if (given.length === 0) errors.push(fieldError.invalid(path, '', 'exactly one value must be specified'))
  if (given.length > 1) errors.push(fieldError.invalid(path, attribute, 'exactly one value must be specified'))
  return errors
}

function countersFaults(counters: Readonly<Record<string, unknown>> | undefined, path: FieldPath): FieldError[] {
  if (Object.keys(counters ?? {}).length === 0) return [fieldError.required(path)]
  return mapFaults(counters, maxCounters, maxCounterName, (name, _, at) => labelFaults(name, at), path)
}

/** Counter sets may be in any slice of the pool, so their existence cannot be checked here. */
function consumptionFaults(consumed: readonly DeviceCounterConsumption[] | undefined, path: FieldPath): FieldError[] {
  return setFaults(
    consumed,
    maxConsumedSets,
    ({ counterSet, counters }, at) => [...counterNameFaults(counterSet, at.child('counterSet')), ...countersFaults(counters, at.child('counters'))],
    ({ counterSet }) => counterSet,
    path,
  )
}
