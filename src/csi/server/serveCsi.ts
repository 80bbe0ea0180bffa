/**
 * Serves a CSI driver on a unix socket (L2): the services that the driver has, with its capabilities. A request is checked before the driver's method runs. While
 * a volume, snapshot or name is in use by one call, another call for it is ABORTED, as the specification allows: the caller repeats it.
 */

import { isAbsolute } from 'node:path'
import { emptyMap } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import { type GrpcClient, GrpcRefusal, type ServiceImplementation } from '#grpc/grpcService'
import { csiProto } from '#grpc/proto/csi'
import { serveUnix, type UnixServer } from '#grpc/unixServer'
import { controllerCapabilities, groupControllerCapabilities, nodeCapabilities, pluginCapabilities } from './capabilities.ts'
import { checkRequest } from './checks.ts'
import { type CsiDriver, CsiError, type VolumeContentSource } from './csiTypes.ts'

type Method = (request: never, client: GrpcClient) => object | Promise<object>
type Methods = Readonly<Record<string, Method>>

/**
 * @param endpoint `unix:///path`; a socket that an earlier process left there is replaced
 * @throws Error when the endpoint is no unix socket, or cannot be bound
 */
export function serveCsi(driver: CsiDriver, endpoint: string): Promise<UnixServer> {
  return serveUnix(socketPathOf(endpoint), servicesOf(driver))
}

/** @throws Error for an endpoint that is no unix socket with an absolute path */
export function socketPathOf(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?(?=\/)/, '')
  if (!isAbsolute(path)) throw new Error(`${JSON.stringify(endpoint)} is not unix:///PATH`)
  return path
}

/** The services of the driver, with checked and guarded methods. */
export function servicesOf(driver: CsiDriver): ServiceImplementation[] {
  const busy = new Set<string>()
  const { controller, groupController, node } = driver
  const service = (name: string, methods: Methods): ServiceImplementation => ({ proto: csiProto, service: `csi.v1.${name}`, methods })
  const guarded = (part: object) => guardedMethods(part, busy)
  return [
    service('Identity', {
      GetPluginInfo: () => ({ name: driver.name, vendorVersion: driver.version }),
      GetPluginCapabilities: () => pluginCapabilities(driver),
      Probe: async () => ({ ready: { value: (await driver.isReady?.()) ?? true } }),
    }),
    ...(controller ? [service('Controller', { ...guarded(controller), ControllerGetCapabilities: () => controllerCapabilities(driver) })] : []),
    ...(groupController
      ? [service('GroupController', { ...guarded(groupController), GroupControllerGetCapabilities: () => groupControllerCapabilities(driver) })]
      : []),
    ...(node ? [service('Node', { ...guarded(node), NodeGetCapabilities: () => nodeCapabilities(driver) })] : []),
  ]
}

/** The driver's methods by the names of the wire. */
function guardedMethods(part: object, busy: Set<string>): Methods {
  const methods = emptyMap<Method>()
  for (const name of methodNamesOf(part)) {
    const method = (part as Readonly<Record<string, (request: object) => unknown>>)[name]
    const wireName = name.charAt(0).toUpperCase() + name.slice(1)
    if (typeof method === 'function')
      methods[wireName] = (request: object) => guard(wireName, request, busy, async () => (await method.call(part, request)) ?? {})
  }
  return methods
}

/** Also those of the object's classes. */
function methodNamesOf(part: object): Set<string> {
  const names = new Set<string>()
  for (let level: object | null = part; level && level !== Object.prototype; level = Object.getPrototypeOf(level)) {
    for (const name of Object.getOwnPropertyNames(level)) if (name !== 'constructor') names.add(name)
  }
  return names
}

async function guard<T>(method: string, request: object, busy: Set<string>, work: () => Promise<T>): Promise<T> {
  checkRequest(method, request)
  const keys = keysOf(method, request)
  const taken = [...keys].find((key) => busy.has(key))
  if (taken !== undefined) throw new CsiError('ABORTED', `another operation for this ${taken.split(' ', 1)[0]} is in progress`)
  for (const key of keys) busy.add(key)
  try {
    return await work()
  } catch (error) {
    throw error instanceof GrpcRefusal ? error : new CsiError(codeOf(error), messageOf(error))
  } finally {
    for (const key of keys) busy.delete(key)
  }
}

/** Methods that only read need no order. */
const reading = /^(List|Get|Validate|ControllerGet|NodeGet)/

interface Named {
  readonly volumeId?: string
  readonly sourceVolumeId?: string
  readonly sourceVolumeIds?: readonly string[]
  readonly snapshotId?: string
  readonly groupSnapshotId?: string
  readonly name?: string
  readonly volumeContentSource?: VolumeContentSource | null
}

/** Also the sources of copies, so that they stay until the copy is complete. */
function keysOf(
  method: string,
  { volumeId, sourceVolumeId, sourceVolumeIds = [], snapshotId, groupSnapshotId, name, volumeContentSource }: Named,
): Set<string> {
  if (reading.test(method)) return new Set()
  const volumes = [volumeId, sourceVolumeId, ...sourceVolumeIds, volumeContentSource?.volume?.volumeId]
  const keys: readonly (readonly [string, string | undefined])[] = [
    ...volumes.map((id) => ['volume', id] as const),
    ...[snapshotId, volumeContentSource?.snapshot?.snapshotId].map((id) => ['snapshot', id] as const),
    ['group', groupSnapshotId],
    [`name by ${method}`, name],
  ]
  return new Set(keys.flatMap(([about, value]) => (value ? [`${about} ${value}`] : [])))
}

function codeOf(error: unknown) {
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'RESOURCE_EXHAUSTED' : 'INTERNAL'
}
