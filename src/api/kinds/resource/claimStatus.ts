/** Validation of a claim's status (L1): allocation, consumers and device status. Upstream: pkg/apis/resource/validation (v1.36). */
import type { AllocatedDeviceStatus, AllocationResult, DeviceRequestAllocationResult, NetworkDeviceData, ResourceClaim } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { formatIp, parseCidr } from '#api/machinery/ip'
import { validateImmutable } from '#api/machinery/objectMeta'
import { validateConditions } from '../conditionRules.ts'
import { utf8Length } from '../core/data.ts'
import type { UpdateInput } from '../defineKind.ts'
import { maxRequests, requestNames, requestRefFaults, requestRefsFaults } from './claimRules.ts'
import {
  bindingConditionFaults,
  configurationFaults,
  driverFaults,
  labelFaults,
  listFaults,
  maxConfigs,
  nodeSelectorFaults,
  objectFaults,
  poolNameFaults,
  setFaults,
} from './deviceRules.ts'

const maxReservations = 256
const maxConditions = 8
const maxDataBytes = 10 * 1024
const maxInterfaceName = 256
const maxHardwareAddress = 128
const maxIps = 16

export function validateClaimStatusUpdate({ obj, old, path: root }: UpdateInput<ResourceClaim>): FieldError[] {
  const path = root.child('status')
  const { allocation, devices, reservedFor = [] } = obj.status ?? {}
  const at = path.child('reservedFor')
  const errors = setFaults(
    reservedFor,
    maxReservations,
    (ref, one) => (['resource', 'name', 'uid'] as const).flatMap((field) => (ref[field] ? [] : [fieldError.required(one.child(field))])),
    ({ uid }) => uid,
    at,
  )
  const allocated = new Set((allocation?.devices?.results ?? []).map(deviceId))
  errors.push(...setFaults(devices, Number.POSITIVE_INFINITY, (device, one) => deviceFaults(device, allocated, one), deviceId, path.child('devices')))
  const isNew = (user: (typeof reservedFor)[number]) => !old.status?.reservedFor?.some((before) => semanticEqual(before, user))
  if (reservedFor.length > 0 && !allocation) errors.push(fieldError.forbidden(at, 'may not be specified when `allocated` is not set'))
  else if (obj.metadata.deletionTimestamp && reservedFor.some(isNew))
    errors.push(fieldError.forbidden(at, 'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set'))
  if (!allocation) return errors
  const result = path.child('allocation')
  if (old.status?.allocation) return [...errors, ...validateImmutable(allocation, old.status.allocation, result)]
  return [...errors, ...allocationFaults(allocation, requestNames(obj.spec?.devices ?? {}), result)]
}

function deviceId({ driver, pool, device, shareID }: AllocatedDeviceStatus | DeviceRequestAllocationResult): string {
  return [driver, pool, device, ...(shareID ? [shareID] : [])].join('/')
}

function deviceFaults(device: AllocatedDeviceStatus, allocated: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const errors = [
    ...driverFaults(device.driver, path.child('driver')),
    ...poolNameFaults(device.pool, path.child('pool')),
    ...labelFaults(device.device, path.child('device')),
  ]
  errors.push(...shareFaults(device.shareID, path.child('shareID')))
  if (!allocated.has(deviceId(device))) errors.push(fieldError.invalid(path, deviceId(device), 'must be an allocated device in the claim'))
  const conditions = device.conditions?.length ?? 0
  if (conditions > maxConditions) errors.push(fieldError.tooMany(path.child('conditions'), conditions, maxConditions))
  errors.push(...validateConditions(device.conditions, path.child('conditions')))
  if (device.data !== undefined) errors.push(...objectFaults(device.data, false, maxDataBytes, path.child('data')))
  return [...errors, ...networkFaults(device.networkData, path.child('networkData'))]
}

/** A part of a shared device is called by a UUID in its one normal form. The first text is of upstream's library, whose others are rare. */
function shareFaults(id: string | undefined, path: FieldPath): FieldError[] {
  if (id === undefined || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return []
  const form = 'uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters'
  const isUuid = /^(urn:uuid:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{32}$/i.test(id)
  if (isUuid) return [fieldError.invalid(path, id, form)]
  const why = [32, 36, 38, 45].includes(id.length) ? 'invalid UUID format' : `invalid UUID length: ${id.length}`
  return [fieldError.invalid(path, id, `error validating uid: ${why}`)]
}

/** Removes the status of devices that the claim no longer has. */
export function dropDeallocatedDevices({ obj, old }: Pick<UpdateInput<ResourceClaim>, 'obj' | 'old'>): void {
  const given = obj.status?.devices
  const before = old.status?.allocation?.devices?.results ?? []
  if (!given || before.length === 0) return
  const kept = new Set((obj.status.allocation?.devices?.results ?? []).map(deviceId))
  const gone = new Set(before.map(deviceId).filter((id) => !kept.has(id)))
  const devices = given.filter((device) => !gone.has(deviceId(device)))
  if (devices.length > 0) obj.status.devices = devices
  else delete obj.status.devices
}

function networkFaults(data: NetworkDeviceData | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const [field, max] of [
    ['interfaceName', maxInterfaceName],
    ['hardwareAddress', maxHardwareAddress],
  ] as const)
    if (utf8Length(data?.[field] ?? '') > max) errors.push(fieldError.tooLong(path.child(field), max))
  return [...errors, ...setFaults(data?.ips, maxIps, interfaceAddressFaults, (ip) => ip, path.child('ips'))]
}

/** An address with the length of its network's prefix, in canonical spelling. */
function interfaceAddressFaults(text: string, path: FieldPath): FieldError[] {
  const block = parseCidr(text)
  if (!block) return [fieldError.invalid(path, text, 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)')]
  const canonical = `${formatIp({ family: block.family, value: block.address })}/${block.prefixLength}`
  return text === canonical ? [] : [fieldError.invalid(path, text, `must be in canonical form (${JSON.stringify(canonical)})`)]
}

function allocationFaults({ devices, nodeSelector }: AllocationResult, names: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const at = path.child('devices')
  const errors = [
    ...listFaults(devices?.results, maxRequests, (result, one) => resultFaults(result, names, one), at.child('results')),
    ...listFaults(
      devices?.config,
      2 * maxConfigs,
      ({ source, requests, opaque }, one) => [
        ...sourceFaults(source, one.child('source')),
        ...requestRefsFaults(requests, names, one.child('requests')),
        ...configurationFaults(opaque, false, one),
      ],
      at.child('config'),
    ),
  ]
  return nodeSelector ? [...errors, ...nodeSelectorFaults(nodeSelector, path.child('nodeSelector'))] : errors
}

function resultFaults(result: DeviceRequestAllocationResult, names: ReadonlySet<string>, path: FieldPath): FieldError[] {
  return [
    ...requestRefFaults(result.request ?? '', names, path.child('request')),
    ...driverFaults(result.driver, path.child('driver')),
    ...poolNameFaults(result.pool, path.child('pool')),
    ...labelFaults(result.device, path.child('device')),
    ...bindingConditionFaults(result.bindingConditions, result.bindingFailureConditions, path),
    ...shareFaults(result.shareID, path.child('shareID')),
  ]
}

function sourceFaults(source: string | undefined, path: FieldPath): FieldError[] {
  if (!source) return [fieldError.required(path)]
  return source === 'FromClaim' || source === 'FromClass' ? [] : [fieldError.notSupported(path, source, ['FromClaim', 'FromClass'])]
}
