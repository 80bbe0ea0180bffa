/** What a driver may say of its devices (L1). Upstream: pkg/apis/resource/validation (v1.36). */
import type { Device, DeviceAttribute, DeviceCounterConsumption, ResourceSlice } from '#api/gen/types/resource.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Subdomain } from '#api/machinery/names'
import { utf8Length } from '../core/data.ts'
import { validateNodeSelectorTerm } from '../core/pod/validateScheduling.ts'
import { faults } from '../rules.ts'
import { capacityFaults } from './capacityRules.ts'
import { bindingConditionFaults, driverFaults, labelFaults, listFaults, poolNameFaults, qualifiedNameFaults, setFaults, taintFaults } from './deviceRules.ts'

const maxDevices = 128
const maxAttributesAndCapacities = 32
const maxAttributeLength = 64
const maxTaints = 16
const maxCounterSets = 8
const maxCounters = 32
const maxConsumedSets = 2
const version =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$/

export function validateSlice({ spec }: ResourceSlice, path: FieldPath): FieldError[] {
  const pool = path.child('pool')
  const errors = [...driverFaults(spec.driver, path.child('driver')), ...poolNameFaults(spec.pool.name, pool.child('name'))]
  if (!(spec.pool.resourceSliceCount > 0))
    errors.push(fieldError.invalid(pool.child('resourceSliceCount'), spec.pool.resourceSliceCount, 'must be greater than zero'))
  if (spec.pool.generation < 0) errors.push(fieldError.invalid(pool.child('generation'), spec.pool.generation, 'must be greater than or equal to zero'))
  errors.push(...placeFaults(spec, path))
  const counters = new Map((spec.sharedCounters ?? []).map((set) => [set.name, new Set(Object.keys(set.counters ?? {}))]))
  const check = (device: Device, at: FieldPath) => deviceFaults(device, counters, spec.perDeviceNodeSelection === true, at)
  errors.push(...setFaults(spec.devices, maxDevices, check, (device) => device.name, 'name', path.child('devices')))
  errors.push(
    ...setFaults(
      spec.sharedCounters,
      maxCounterSets,
      (set, at) => [...labelFaults(set.name, at.child('name')), ...countersFaults(set.counters, at.child('counters'))],
      (set) => set.name,
      'name',
      path.child('sharedCounters'),
    ),
  )
  return errors
}

/** Where the devices are: exactly one way to say it. */
function placeFaults(spec: ResourceSlice['spec'], path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const said: string[] = []
  if (spec.nodeName) errors.push(...faults(path.child('nodeName'), spec.nodeName, isDns1123Subdomain(spec.nodeName)))
  else if (spec.nodeName === '') errors.push(fieldError.invalid(path.child('nodeName'), '', 'must be either unset or set to a non-empty string'))
  if (spec.nodeName) said.push('`nodeName`')
  if (spec.nodeSelector) {
    said.push('`nodeSelector`')
    const terms = spec.nodeSelector.nodeSelectorTerms ?? []
    const at = path.child('nodeSelector', 'nodeSelectorTerms')
    for (const [i, term] of terms.entries()) errors.push(...validateNodeSelectorTerm(term, true, at.index(i)))
    if (terms.length !== 1) errors.push(fieldError.invalid(at, terms, 'must have exactly one node selector term'))
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

function deviceFaults(device: Device, shared: ReadonlyMap<string, ReadonlySet<string>>, perDevice: boolean, path: FieldPath): FieldError[] {
  const errors = labelFaults(device.name, path.child('name'))
  const attributes = Object.entries(device.attributes ?? {})
  const capacities = Object.entries(device.capacity ?? {})
  const total = attributes.length + capacities.length
  if (total > maxAttributesAndCapacities)
    errors.push(fieldError.invalid(path, total, `the total number of attributes and capacities must not exceed ${maxAttributesAndCapacities}`))
  for (const [name, attribute] of attributes) {
    const at = path.child('attributes').key(name)
    errors.push(...qualifiedNameFaults(name, at), ...attributeFaults(attribute, at))
  }
  for (const [name, capacity] of capacities) {
    const at = path.child('capacity').key(name)
    errors.push(...qualifiedNameFaults(name, at), ...capacityFaults(capacity, device.allowMultipleAllocations === true, at))
  }
  errors.push(...listFaults(device.taints, maxTaints, taintFaults, path.child('taints')))
  errors.push(...consumptionFaults(device.consumesCounters, shared, path.child('consumesCounters')))
  errors.push(...devicePlaceFaults(device, perDevice, path))
  return [...errors, ...bindingConditionFaults(device.bindingConditions, device.bindingFailureConditions, path)]
}

function devicePlaceFaults(device: Device, perDevice: boolean, path: FieldPath): FieldError[] {
  const said = (['nodeName', 'nodeSelector', 'allNodes'] as const).filter((field) => device[field] !== undefined)
  if (!perDevice) {
    const why = '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
    return said.length > 0 ? [fieldError.invalid(path, null, why)] : []
  }
  const one = 'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
  if (said.length === 0) return [fieldError.required(path, one)]
  return said.length > 1 ? [fieldError.invalid(path, `{${said.map((field) => `\`${field}\``).join(', ')}}`, one)] : []
}

function attributeFaults(attribute: DeviceAttribute, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const given = (['bool', 'int', 'string', 'version', 'bools', 'ints', 'strings', 'versions'] as const).filter((field) => attribute[field] !== undefined)
  if (attribute.version !== undefined && !version.test(attribute.version))
    errors.push(fieldError.invalid(path.child('version'), attribute.version, 'must be a string compatible with semver.org spec 2.0.0'))
  for (const field of ['string', 'version'] as const)
    if (utf8Length(attribute[field] ?? '') > maxAttributeLength) errors.push(fieldError.tooLong(path.child(field), maxAttributeLength))
  if (given.length === 0) errors.push(fieldError.required(path, 'exactly one value must be specified'))
  if (given.length > 1) errors.push(fieldError.invalid(path, attribute, 'exactly one value must be specified'))
  return errors
}

function countersFaults(counters: Readonly<Record<string, unknown>> | undefined, path: FieldPath): FieldError[] {
  const names = Object.keys(counters ?? {})
  if (names.length === 0) return [fieldError.required(path)]
  const tooMany = names.length > maxCounters ? [fieldError.tooMany(path, names.length, maxCounters)] : []
  return [...tooMany, ...names.flatMap((name) => labelFaults(name, path.key(name)))]
}

function consumptionFaults(
  consumed: readonly DeviceCounterConsumption[] | undefined,
  shared: ReadonlyMap<string, ReadonlySet<string>>,
  path: FieldPath,
): FieldError[] {
  const errors = setFaults(
    consumed,
    maxConsumedSets,
    ({ counterSet, counters }, at) => [...(counterSet ? [] : [fieldError.required(at.child('counterSet'))]), ...countersFaults(counters, at.child('counters'))],
    ({ counterSet }) => counterSet,
    'counterSet',
    path,
  )
  for (const [i, { counterSet, counters }] of (consumed ?? []).entries()) {
    const known = shared.get(counterSet)
    const at = path.index(i)
    if (!known) {
      errors.push(fieldError.invalid(at.child('counterSet'), counterSet, 'must reference a counterSet defined in the ResourceSlice sharedCounters'))
      continue
    }
    for (const name of Object.keys(counters ?? {}))
      if (!known.has(name)) errors.push(fieldError.invalid(at.child('counters'), name, 'must reference a counter defined in the ResourceSlice sharedCounters'))
  }
  return errors
}
