/**
 * Opens the ports of this node that the Services of Gateways lead to (L3), and makes the node an endpoint of these Services. A port that cannot be opened is
 * tried again; the other ports are served meanwhile.
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { createWakeUp } from '#base/wakeUp'
import { services } from '#client/builtIn'
import { namespaceIndex } from '#client/cache/indexer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { type Announcer, announce } from './announce.ts'
import { onEach } from './following.ts'
import type { GatewayRoutes } from './gatewayRoutes.ts'
import { gatewayOfService } from './model/gateway/gatewayService.ts'
import { ingressPlace } from './place.ts'
import type { Listener } from './proxy/openPort.ts'
import type { RunningProxy } from './proxy/proxy.ts'

export interface GatewayPortsDeps extends Announcer {
  readonly informers: SharedInformerFactory
  readonly routes: GatewayRoutes
  readonly proxy: RunningProxy
}

export interface GatewayPortsConfig {
  readonly nodeName: string
  readonly nodeAddress: string
  readonly listenOn?: string | undefined
  /** PEM, for server names without a certificate. */
  readonly defaultCertificate: { readonly cert: string; readonly key: string }
}

const retryMs = 2000

interface Wanted {
  readonly gateway: string
  readonly protocol: string
  readonly publicPort: number
  readonly name: string
  readonly port: number
}

interface Open {
  /** What the port is for. */
  readonly use: string
  readonly listener: Listener
}

export async function runGatewayPorts(deps: GatewayPortsDeps, config: GatewayPortsConfig, signal: AbortSignal): Promise<void> {
  const { routes, informers, clock } = deps
  const serviceInformer = informers.of(services)
  const open = new Map<number, Open>()
  const announced = new Map<string, string>()
  const changes = createWakeUp()
  const stop = routes.onChange(changes.ring)
  const registration = serviceInformer.addHandler(
    onEach(({ metadata }) => {
      if (metadata.namespace === ingressPlace.namespace) changes.ring()
    }),
  )
  try {
    await Promise.all([routes.ready, serviceInformer.synced(signal)])
    while (!signal.aborted) {
      const ours = serviceInformer.store.byIndex(namespaceIndex, ingressPlace.namespace).filter((service) => gatewayOfService(service) !== undefined)
      const names = new Set(ours.map(({ metadata }) => metadata.name))
      for (const name of announced.keys()) if (!names.has(name)) announced.delete(name)
      const failed = await keepPorts(deps, config, wantedPorts(ours, routes), open)
      for (const service of ours) await keepAnnounced(deps, config, service, open, announced, signal)
      const retry = failed ? clock.timer(retryMs, changes.ring) : undefined
      await changes.wait(signal)
      retry?.cancel()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    stop()
    registration.remove()
    await Promise.all([...open.values()].map(({ listener }) => listener.close()))
  }
}

/** By the node's port. When two Services name one port, the older Service has it until the leader gives the other one another port. */
function wantedPorts(ours: readonly Frozen<Service>[], { table }: GatewayRoutes): Map<number, Wanted> {
  const wanted = new Map<number, Wanted>()
  const age = ({ metadata }: Frozen<Service>) => `${metadata.creationTimestamp} ${metadata.name}`
  for (const service of [...ours].sort((a, b) => (age(a) < age(b) ? -1 : 1))) {
    const gateway = gatewayOfService(service) ?? ''
    const listening = table.portsOf(gateway)
    for (const { name = '', port, targetPort } of service.spec.ports ?? []) {
      const protocol = listening.get(port)?.protocol
      const target = Number(targetPort)
      if (protocol && !wanted.has(target)) wanted.set(target, { gateway, protocol, publicPort: port, name, port: target })
    }
  }
  return wanted
}

const useOf = ({ gateway, protocol, publicPort }: Wanted) => `${gateway} ${protocol} ${publicPort}`

/** @returns true when a port could not be opened */
async function keepPorts(
  { proxy, routes, log }: GatewayPortsDeps,
  { listenOn, nodeAddress, defaultCertificate }: GatewayPortsConfig,
  wanted: ReadonlyMap<number, Wanted>,
  open: Map<number, Open>,
): Promise<boolean> {
  for (const [port, { use, listener }] of open) {
    const now = wanted.get(port)
    if (now && useOf(now) === use) continue
    open.delete(port)
    // Stops listening at once; requests in flight end in their own time.
    void listener.close()
  }
  let failed = false
  for (const [port, one] of wanted) {
    if (open.has(port)) continue
    const { gateway, protocol, publicPort } = one
    const tls = { ...defaultCertificate, contextOf: (name: string) => routes.certificateOf(gateway, publicPort, name) }
    try {
      const options = { host: listenOn ?? nodeAddress, port, publicPort, gateway }
      const listener = await (protocol === 'TLS' ? proxy.openStreams(options, tls) : proxy.open(options, protocol === 'HTTPS' ? tls : undefined))
      open.set(port, { use: useOf(one), listener })
    } catch (error) {
      log.error(error, 'A port of a Gateway could not be opened', { gateway, port })
      failed = true
    }
  }
  return failed
}

async function keepAnnounced(
  deps: Announcer,
  config: GatewayPortsConfig,
  service: Frozen<Service>,
  open: ReadonlyMap<number, Open>,
  announced: Map<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid = '' } = service.metadata
  const gateway = gatewayOfService(service) ?? ''
  const ports = (service.spec.ports ?? []).flatMap((port) => {
    const target = Number(port.targetPort)
    return open.get(target)?.use.startsWith(`${gateway} `) ? [{ name: port.name ?? '', port: target }] : []
  })
  const text = JSON.stringify([uid, ports])
  if (announced.get(name) === text || (ports.length === 0 && !announced.has(name))) return
  const owner = { apiVersion: 'v1', kind: 'Service', name, uid }
  await announce(deps, config, { service: name, ports, owner }, signal)
  announced.set(name, text)
}
