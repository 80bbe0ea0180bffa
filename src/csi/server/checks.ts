/**
 * The checks of arguments that the specification demands of every driver (L2), made before the driver's method is called. Each failure is INVALID_ARGUMENT.
 * Specification: container-storage-interface/spec v1.12, "Size limits" and the required fields of each message.
 */
import { bareMap } from '#base/bareMap'
import { type CapacityRange, CsiError, type VolumeCapability } from './csiTypes.ts'

type Request = Readonly<Record<string, unknown>>

/** Bytes of a text field, of a node's id, of the text of one map, and of a path. */
const longest = { text: 128, node: 256, map: 4096, path: 4096 } as const

/** Members that a request must name, by method. */
const required: Readonly<Record<string, readonly string[]>> = bareMap({
  CreateVolume: ['name', 'volumeCapabilities'],
  DeleteVolume: ['volumeId'],
  ControllerPublishVolume: ['volumeId', 'nodeId', 'volumeCapability'],
  ControllerUnpublishVolume: ['volumeId'],
  ValidateVolumeCapabilities: ['volumeId', 'volumeCapabilities'],
  CreateSnapshot: ['sourceVolumeId', 'name'],
  DeleteSnapshot: ['snapshotId'],
  GetSnapshot: ['snapshotId'],
  ControllerExpandVolume: ['volumeId', 'capacityRange'],
  ControllerGetVolume: ['volumeId'],
  ControllerModifyVolume: ['volumeId', 'mutableParameters'],
  CreateVolumeGroupSnapshot: ['name', 'sourceVolumeIds'],
  DeleteVolumeGroupSnapshot: ['groupSnapshotId'],
  GetVolumeGroupSnapshot: ['groupSnapshotId'],
  NodeStageVolume: ['volumeId', 'stagingTargetPath', 'volumeCapability'],
  NodeUnstageVolume: ['volumeId', 'stagingTargetPath'],
  NodePublishVolume: ['volumeId', 'targetPath', 'volumeCapability'],
  NodeUnpublishVolume: ['volumeId', 'targetPath'],
  NodeGetVolumeStats: ['volumeId', 'volumePath'],
  NodeExpandVolume: ['volumeId', 'volumePath'],
})

/** @throws CsiError INVALID_ARGUMENT */
export function checkRequest(method: string, request: object): void {
  const members = request as Request
  for (const name of required[method] ?? []) if (isEmpty(members[name])) refuse(`${name} is missing`)
  for (const [name, value] of Object.entries(members)) checkMember(name, value)
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (value instanceof Object) return Object.getPrototypeOf(value) === Object.prototype && Object.keys(value).length === 0
  return value === undefined || value === null || value === ''
}

function checkMember(name: string, value: unknown): void {
  if (typeof value === 'string') checkText(name, value)
  else if (name === 'volumeCapability' && value) checkCapability(value as VolumeCapability)
  else if (name === 'volumeCapabilities') for (const one of value as readonly VolumeCapability[]) checkCapability(one)
  else if (name === 'capacityRange' && value) checkRange(value as CapacityRange)
  else if (/(secrets|parameters|context)$/i.test(name)) checkMap(name, value as Readonly<Record<string, string>>)
}

function checkText(name: string, value: string): void {
  const most = name.endsWith('Path') ? longest.path : name === 'nodeId' ? longest.node : longest.text
  if (Buffer.byteLength(value) > most) refuse(`${name} is longer than ${most} bytes`)
  if (value.includes('\0')) refuse(`${name} holds a zero byte`)
}

function checkMap(name: string, map: Readonly<Record<string, string>>): void {
  const bytes = Object.entries(map).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0)
  if (bytes > longest.map) refuse(`${name} holds more than ${longest.map} bytes`)
}

function checkCapability({ block, mount, accessMode }: VolumeCapability): void {
  if (!block === !mount) refuse('a volume capability must name one access type, block or mount')
  if (!accessMode || accessMode.mode === 'UNKNOWN' || typeof accessMode.mode !== 'string') refuse('a volume capability must name a known access mode')
  if (mount && JSON.stringify(mount.mountFlags ?? []).length > longest.map) refuse(`mountFlags hold more than ${longest.map} bytes`)
}

function checkRange({ requiredBytes, limitBytes }: CapacityRange): void {
  if (requiredBytes < 0 || limitBytes < 0) refuse('capacityRange must not be negative')
  if (requiredBytes === 0 && limitBytes === 0) refuse('capacityRange must hold a bound')
  if (limitBytes > 0 && requiredBytes > limitBytes) refuse('capacityRange: the limit is below the required size')
}

function refuse(message: string): never {
  throw new CsiError('INVALID_ARGUMENT', message)
}
