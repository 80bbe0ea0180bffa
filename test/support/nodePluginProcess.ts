/**
 * A plugin for a kubelet in a process of its own, a device plugin or a DRA driver, written against the services' descriptions alone. It reports
 * every call to its parent, and obeys the parent's commands: change the health of devices, refuse, end.
 */
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { devicePluginProto } from '#grpc/proto/devicePlugin'
import { draHealthProto, draProtos } from '#grpc/proto/dra'
import { pluginRegistrationProto } from '#grpc/proto/pluginRegistration'
import { parseProto } from '#grpc/protoText'
import { connectUnixService } from '#grpc/unixService'
import type { NodePluginOptions, NodePluginOrder } from './nodePlugin.ts'

const plugin = JSON.parse(process.argv[2] ?? '{}') as NodePluginOptions
const server = new Server()
const streams = new Set<ServerWritableStream<object, object>>()
let order: NodePluginOrder = {}

type Done = (error: object | null, answer?: object) => void
type Call = ServerUnaryCall<never, object>
type Handler = (request: never) => object

const told = (method: string, answer: Handler) => (call: Call, done: Done) => {
  process.send?.({ method, request: call.request })
  if (order.refuse === method) done({ code: status.INTERNAL, details: 'not today' })
  else done(null, answer(call.request))
}

const healthOf = (id: string) => (order.unhealthy?.includes(id) ? 'Unhealthy' : 'Healthy')
const listing = () => ({
  devices: plugin.devices.map(({ id, node }) => ({ ID: id, health: healthOf(id), topology: node === undefined ? null : { nodes: [{ ID: node }] } })),
})
const draHealth = () => ({
  devices: plugin.devices.map(({ id }) => ({
    device: { poolName: 'pool', deviceName: id },
    health: healthOf(id).toUpperCase(),
    lastUpdatedTime: 1,
    healthCheckTimeoutSeconds: 60,
  })),
})
const watching = (message: () => object) => (call: ServerWritableStream<object, object>) => {
  streams.add(call)
  call.on('cancelled', () => streams.delete(call))
  call.write(message())
}
const say = plugin.kind === 'device' ? listing : draHealth

const devicePlugin = {
  GetDevicePluginOptions: told('GetDevicePluginOptions', () => ({})),
  ListAndWatch: watching(listing),
  GetPreferredAllocation: told(
    'GetPreferredAllocation',
    ({ containerRequests }: { containerRequests: { availableDeviceIDs: string[]; allocationSize: number }[] }) => ({
      containerResponses: containerRequests.map(({ availableDeviceIDs, allocationSize }) => ({ deviceIDs: availableDeviceIDs.sort().slice(-allocationSize) })),
    }),
  ),
  Allocate: told('Allocate', ({ containerRequests }: { containerRequests: { devicesIds: string[] }[] }) => ({
    containerResponses: containerRequests.map(({ devicesIds }) => ({
      envs: { WIDGETS: devicesIds.join(',') },
      devices: devicesIds.map((id) => ({ containerPath: `/dev/${id}`, hostPath: '/dev/null', permissions: 'rw' })),
      annotations: { 'widget.skiff.test/ids': devicesIds.join(',') },
    })),
  })),
  PreStartContainer: told('PreStartContainer', () => ({})),
}

const draPlugin = {
  NodePrepareResources: told('NodePrepareResources', ({ claims }: { claims: { uid: string }[] }) => ({
    claims: Object.fromEntries(
      claims.map(({ uid }) => [
        uid,
        { devices: plugin.devices.map(({ id }) => ({ requestNames: ['one'], poolName: 'pool', deviceName: id, cdiDeviceIds: [`skiff.test/widget=${id}`] })) },
      ]),
    ),
  })),
  NodeUnprepareResources: told('NodeUnprepareResources', ({ claims }: { claims: { uid: string }[] }) => ({
    claims: Object.fromEntries(claims.map(({ uid }) => [uid, {}])),
  })),
}

const registration = {
  GetInfo: told('GetInfo', () => ({
    type: 'DRAPlugin',
    name: plugin.name,
    endpoint: plugin.socket,
    supportedVersions: [`${plugin.version ?? 'v1'}.DRAPlugin`, 'v1alpha1.DRAResourceHealth'],
  })),
  NotifyRegistrationStatus: told('NotifyRegistrationStatus', () => ({})),
}

/** By a library of its own, which knows only the service's description. */
function serviceOf(proto: string, name: string): ServiceDefinition {
  let node: unknown = loadPackageDefinition(fromJSON(parseProto(proto) as never, { longs: Number, enums: String, defaults: true, bytes: Buffer }))
  for (const part of name.split('.')) node = (node as Record<string, unknown>)[part]
  return (node as { readonly service: ServiceDefinition }).service
}

const add = (proto: string, service: string, methods: object) => server.addService(serviceOf(proto, service), methods as never)
const listen = (on: Server, socket: string) =>
  new Promise<void>((resolve, reject) => on.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())))

async function start(): Promise<void> {
  if (plugin.kind === 'device') {
    add(devicePluginProto, 'v1beta1.DevicePlugin', devicePlugin)
    await listen(server, plugin.socket)
    const kubelet = connectUnixService(devicePluginProto, 'v1beta1.Registration', `unix:${plugin.registry}`)
    const options = { preStartRequired: true, getPreferredAllocationAvailable: true }
    const endpoint = plugin.socket.slice(plugin.socket.lastIndexOf('/') + 1)
    await kubelet.call('Register', { version: 'v1beta1', endpoint, resourceName: plugin.name, options }, 10_000)
    kubelet.close()
  } else {
    const version = plugin.version ?? 'v1'
    add(draProtos[version], `k8s.io.kubelet.pkg.apis.dra.${version}.DRAPlugin`, draPlugin)
    add(draHealthProto, 'v1alpha1.DRAResourceHealth', { NodeWatchResources: watching(draHealth) })
    await listen(server, plugin.socket)
    add(pluginRegistrationProto, 'pluginregistration.Registration', registration)
    await listen(server, plugin.registry)
  }
  process.send?.({ method: 'started' })
}

process.on('message', (message: NodePluginOrder) => {
  order = message
  for (const stream of streams) stream.write(say())
})
process.on('disconnect', () => {
  server.forceShutdown()
  process.exit(0)
})
start().catch((error: unknown) => process.send?.({ method: 'failed', request: { error: String(error) } }))
