/**
 * Makes the node ports of real nodes answer on this host's 127.0.0.1 too (L5): a TCP forwarder per node port, opened and closed with its Service.
 * The nodes do the balancing; this only reaches one of them. UDP is not forwarded. Upstream's counterpart: a port mapping of the node's container.
 */
import net from 'node:net'
import type { Node, Service } from '#api/gen/types/core.v1'
import { isNodeReady, nodeAddress } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { createWakeUp, type WakeUp } from '#base/wakeUp'
import { nodes, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { EventRecorder } from '#client/eventRecorder'

export interface LocalPortsDeps {
  readonly informers: SharedInformerFactory
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Logger
}

export interface LocalPortsOptions {
  /** Whether a node with this address is one of this cluster's real nodes. */
  readonly isReal: (address: string) => boolean
}

const localhost = '127.0.0.1'
/** The pause before another attempt to bind a taken port. */
const retryMs = 10_000
/** A node that drops the packets, because it has no endpoint of its own, must not hold up the connection. */
const connectTimeoutMs = 1000

export function createLocalPorts(deps: LocalPortsDeps, options: LocalPortsOptions): Component {
  return { name: 'local-ports', run: (signal) => run(deps, options, signal) }
}

/** A node port that is open, or waits for its port. */
interface OpenPort {
  readonly uid: string | undefined
  /** Undefined while another process has the port. */
  forwarder: Forwarder | undefined
}

async function run(deps: LocalPortsDeps, options: LocalPortsOptions, signal: AbortSignal): Promise<void> {
  const serviceInformer = deps.informers.of(services)
  const nodeInformer = deps.informers.of(nodes)
  const changes = createWakeUp()
  const registration = serviceInformer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring })
  const open = new Map<number, OpenPort>()
  const targets = () => realNodeAddresses(nodeInformer.store.list(), options.isReal)
  try {
    await Promise.all([serviceInformer.synced(signal), nodeInformer.synced(signal)])
    while (!signal.aborted) {
      const wanted = localNodePorts(serviceInformer.store.list())
      await closeOthers(open, wanted)
      let taken = false
      for (const [port, service] of wanted) if (!(await ensureOpen(deps, open, port, service, targets))) taken = true
      await nextLook(deps.clock, changes, taken, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    registration.remove()
    await Promise.all([...open.values()].map(({ forwarder }) => forwarder?.close(true)))
  }
}

async function nextLook(clock: Clock, changes: WakeUp, taken: boolean, signal: AbortSignal): Promise<void> {
  const retry = taken ? clock.timer(retryMs, changes.ring) : undefined
  await changes.wait(signal)
  retry?.cancel()
}

/** Stops listening. Established connections stay, as they do on the nodes when a Service is deleted. */
async function closeOthers(open: Map<number, OpenPort>, wanted: ReadonlyMap<number, Frozen<Service>>): Promise<void> {
  for (const [port, { uid, forwarder }] of [...open]) {
    if (wanted.has(port) && wanted.get(port)?.metadata.uid === uid) continue
    open.delete(port)
    await forwarder?.close(false)
  }
}

/** Returns false when another process owns the port; records one Event on the Service. */
async function ensureOpen(
  deps: LocalPortsDeps,
  open: Map<number, OpenPort>,
  port: number,
  service: Frozen<Service>,
  targets: () => readonly string[],
): Promise<boolean> {
  const before = open.get(port)
  if (before?.forwarder) return true
  const entry: OpenPort = before ?? { uid: service.metadata.uid, forwarder: undefined }
  open.set(port, entry)
  try {
    entry.forwarder = await openForwarder({ host: localhost, port, targets })
    return true
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (before) return false
    const why = code === 'EADDRINUSE' ? `${localhost}:${port} is in use by another process` : message
    deps.events.event(service, 'Warning', 'LocalPortUnavailable', `Node port ${port} is not reachable on localhost: ${why}; the nodes' own addresses serve it`)
    deps.log.warn('A node port cannot be opened on localhost', { port, service: `${service.metadata.namespace}/${service.metadata.name}`, why })
    return false
  }
}

/** The TCP node ports that Services have, by number. */
export function localNodePorts(list: readonly Frozen<Service>[]): Map<number, Frozen<Service>> {
  const found = new Map<number, Frozen<Service>>()
  for (const service of list) {
    if (service.spec.type !== 'NodePort' && service.spec.type !== 'LoadBalancer') continue
    for (const { nodePort, protocol } of service.spec.ports ?? []) if (nodePort && (protocol ?? 'TCP') === 'TCP') found.set(nodePort, service)
  }
  return found
}

/** Addresses of the real nodes, those that are Ready first. */
export function realNodeAddresses(list: readonly Frozen<Node>[], isReal: (address: string) => boolean): string[] {
  const addresses = (some: readonly Frozen<Node>[]) => some.map((node) => nodeAddress(node, 'InternalIP')).filter((one) => one !== undefined && isReal(one))
  return [...addresses(list.filter(isNodeReady)), ...addresses(list.filter((node) => !isNodeReady(node)))] as string[]
}

export interface Forwarder {
  /** Stops listening; `now` also ends the connections. */
  close(now: boolean): Promise<void>
}

export interface ForwarderOptions {
  readonly host: string
  readonly port: number
  /** Addresses to connect to, on the same port: the first that answers is used. Called for each connection. */
  readonly targets: () => readonly string[]
}

/** Listens and forwards; rejects when the port cannot be had. */
export async function openForwarder({ host, port, targets }: ForwarderOptions): Promise<Forwarder> {
  const sockets = new Set<net.Socket>()
  // Tries the node that answered last first: with a local traffic policy only some nodes answer.
  let preferred: string | undefined
  const keep = (socket: net.Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  const serve = async (client: net.Socket) => {
    keep(client)
    client.on('error', () => client.destroy())
    for (const target of preferredFirst(targets(), preferred)) {
      const upstream = await connect(target, port)
      if (!upstream) continue
      preferred = target
      if (client.destroyed) {
        upstream.destroy()
        return
      }
      keep(upstream)
      join(client, upstream)
      return
    }
    client.resetAndDestroy()
  }
  const server = net.createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => void serve(client))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', () => {})
  return {
    close: async (now) => {
      // Do not wait for the callback, which waits for the last connection; the port is free as soon as close() returns.
      server.close()
      if (now) for (const socket of sockets) socket.destroy()
    },
  }
}

function preferredFirst(targets: readonly string[], preferred: string | undefined): readonly string[] {
  return preferred !== undefined && targets.includes(preferred) ? [preferred, ...targets.filter((target) => target !== preferred)] : targets
}

function connect(host: string, port: number): Promise<net.Socket | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port, allowHalfOpen: true, noDelay: true, timeout: connectTimeoutMs })
    const give = () => {
      socket.destroy()
      resolve(undefined)
    }
    socket.once('error', give)
    socket.once('timeout', give)
    socket.once('connect', () => {
      socket.setTimeout(0)
      socket.off('error', give)
      socket.off('timeout', give)
      resolve(socket)
    })
  })
}

/** Copies bytes both ways until both sides have ended. An error on one side closes the other. */
function join(client: net.Socket, upstream: net.Socket): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      // After an orderly end all bytes are passed on, and the other side may still have bytes to write: leave it open.
      if (!from.readableEnded || !from.writableFinished) to.destroy()
    })
    from.pipe(to)
  }
}
