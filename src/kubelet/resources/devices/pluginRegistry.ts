/**
 * The device plugins of a node (L3, edge): their registrations at kubelet.sock, the devices that they list, and the last known devices of plugins
 * that stopped. Upstream: kubelet/cm/devicemanager/plugin/v1beta1/server.go, handler.go, endpoint.go, manager.go GetCapacity (v1.36).
 */

import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { aborted } from '#base/orAborted'
import { connectDevicePlugin, type DevicePluginClient, type PluginDevice, type PluginOptions } from '#grpc/devicePlugin'
import { GrpcRefusal } from '#grpc/grpcService'
import { devicePluginProto } from '#grpc/proto/devicePlugin'
import { serveUnix, type UnixServer } from '#grpc/unixServer'
import { makeDirectory } from '#host/files'

export const devicePluginVersion = 'v1beta1'
export const kubeletSocket = 'kubelet.sock'
export const devicesCheckpoint = 'kubelet_internal_checkpoint'

/** How long the devices of a plugin that has gone count as there but unhealthy. */
const endpointStopGraceMs = 5 * 60_000

export interface DeviceResource {
  readonly name: string
  readonly devices: ReadonlyMap<string, PluginDevice>
  readonly options: PluginOptions
  /** Undefined while its plugin is gone. */
  readonly client: DevicePluginClient | undefined
}

export interface PluginRegistry {
  /** Undefined for resources that no plugin has registered, or whose plugin has been gone for too long. */
  get(resource: string): DeviceResource | undefined
  /** Every resource that was ever registered: after its plugin is gone, the node must report 0. */
  names(): string[]
  healthy(resource: string): Set<string>
  /** Resources known from before a restart, until their plugins are back. */
  remember(resource: string): void
  /** Registers until aborted. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves once plugins can register. */
  readonly listening: Promise<void>
}

export interface RegistryDeps {
  readonly clock: Clock
  readonly log: Logger
  /** The directory of the sockets, as this process sees it. */
  readonly directory: string
  onChange(resource: string): void
  onRegistered?(resource: string): void
}

interface Endpoint {
  resource: DeviceResource
  stop: AbortController
  stoppedAtMs: number | undefined
  listening: Promise<void>
}

const noOptions: PluginOptions = { preStartRequired: false, getPreferredAllocationAvailable: false }
/** More kinds of devices, or more devices of a kind, are a plugin that has gone mad. */
const maxResources = 1_000
const maxDevices = 100_000

const domain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const name = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** `vendor.example/thing`: outside of kubernetes.io, and such that a quota can be named after it. */
export function isExtendedResourceName(resource: string): boolean {
  const [prefix = '', suffix = '', ...rest] = resource.split('/')
  if (rest.length > 0 || !domain.test(prefix) || !name.test(suffix) || suffix.length > 63 || `requests.${prefix}`.length > 253) return false
  return !prefix.endsWith('kubernetes.io') && !resource.startsWith('requests.')
}

interface RegisterRequest {
  readonly version: string
  readonly endpoint: string
  readonly resourceName: string
  readonly options: PluginOptions | null
}

function checkRequest({ version, resourceName, endpoint }: RegisterRequest): void {
  if (version !== devicePluginVersion) {
    throw new GrpcRefusal('UNKNOWN', `requested API version "${version}" is not supported by kubelet. Supported version is ["${devicePluginVersion}"]`)
  }
  if (!isExtendedResourceName(resourceName)) throw new GrpcRefusal('UNKNOWN', `the ResourceName "${resourceName}" is invalid`)
  // The kubelet connects to sockets below its own directory and nowhere else.
  if (endpoint === '' || endpoint !== basename(endpoint) || endpoint === '..' || endpoint === kubeletSocket) {
    throw new GrpcRefusal('INVALID_ARGUMENT', `the endpoint "${endpoint}" is invalid: it should be the name of a socket in the device plugin directory`)
  }
}

export function createPluginRegistry(deps: RegistryDeps): PluginRegistry {
  const { clock, log, directory } = deps
  const endpoints = new Map<string, Endpoint>()
  const seen = new Set<string>()
  let markListening = () => {}
  const listening = new Promise<void>((resolve) => {
    markListening = resolve
  })

  const expired = ({ stoppedAtMs }: Endpoint) => stoppedAtMs !== undefined && clock.now() - stoppedAtMs > endpointStopGraceMs

  const disconnected = (resource: string, endpoint: Endpoint) => {
    endpoint.resource.client?.close()
    if (endpoints.get(resource) !== endpoint || endpoint.stoppedAtMs !== undefined) return
    endpoint.stoppedAtMs = clock.now()
    const devices = new Map([...endpoint.resource.devices].map(([id, device]) => [id, { ...device, health: 'Unhealthy' }]))
    endpoint.resource = { ...endpoint.resource, client: undefined, devices }
    log.info('Device plugin is gone', { resource })
    deps.onChange(resource)
  }

  /** Follows the plugin's list of devices until the connection ends. */
  const listen = async (resource: string, endpoint: Endpoint, client: DevicePluginClient): Promise<void> => {
    try {
      for await (const { devices } of client.listAndWatch(endpoint.stop.signal)) {
        if (devices.length > maxDevices) throw new Error(`${devices.length} devices are more than a node can have (${maxDevices})`)
        endpoint.resource = { ...endpoint.resource, devices: new Map(devices.map((device) => [device.ID, device])) }
        deps.onChange(resource)
      }
    } catch (error) {
      log.warn('Listening to a device plugin failed', { resource, error: messageOf(error) })
    }
    disconnected(resource, endpoint)
  }

  const connect = (request: RegisterRequest) => {
    const { resourceName: resource } = request
    endpoints.get(resource)?.stop.abort()
    seen.add(resource)
    const client = connectDevicePlugin(join(directory, request.endpoint))
    const described: DeviceResource = { name: resource, devices: new Map(), options: request.options ?? noOptions, client }
    const endpoint: Endpoint = { resource: described, stop: new AbortController(), stoppedAtMs: undefined, listening: Promise.resolve() }
    endpoints.set(resource, endpoint)
    endpoint.listening = listen(resource, endpoint, client)
  }

  const register = async (request: RegisterRequest): Promise<object> => {
    log.info('Got registration request from device plugin with resource', { resource: request.resourceName, endpoint: request.endpoint })
    checkRequest(request)
    if (!seen.has(request.resourceName) && seen.size >= maxResources)
      throw new GrpcRefusal('RESOURCE_EXHAUSTED', `a node has at most ${maxResources} extended resources`)
    connect(request)
    deps.onRegistered?.(request.resourceName)
    return {}
  }

  const live = (resource: string) => {
    const endpoint = endpoints.get(resource)
    return endpoint && !expired(endpoint) ? endpoint.resource : undefined
  }

  return {
    listening,
    get: live,
    names: () => [...seen].sort(),
    healthy: (resource) => new Set([...(live(resource)?.devices.values() ?? [])].filter(({ health }) => health === 'Healthy').map(({ ID }) => ID)),
    remember: (resource) => {
      seen.add(resource)
      const described: DeviceResource = { name: resource, devices: new Map(), options: noOptions, client: undefined }
      endpoints.set(resource, { resource: described, stop: new AbortController(), stoppedAtMs: clock.now(), listening: Promise.resolve() })
    },
    run: async (signal) => {
      let server: UnixServer | undefined
      try {
        // Plugins watch for the socket to be created again, and then register again.
        await makeDirectory(directory, 0o750)
        await removeSockets(directory)
        server = await serveUnix(join(directory, kubeletSocket), [
          { proto: devicePluginProto, service: 'v1beta1.Registration', methods: { Register: register } },
        ])
        markListening()
        await aborted(signal)
      } finally {
        await server?.close()
        for (const endpoint of endpoints.values()) endpoint.stop.abort()
        await Promise.all([...endpoints.values()].map((endpoint) => endpoint.listening))
      }
    },
  }
}

/** Everything of an earlier life but the checkpoint. */
async function removeSockets(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    if (entry.isSocket()) await rm(join(directory, entry.name), { force: true })
  }
}
