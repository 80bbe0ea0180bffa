/**
 * Makes the ports of `skiff up --publish` answer on this host's localhost (L5), whatever Services there are: the same port of a node takes the connections. Upstream's
 * counterpart: the port mappings of kind and k3d.
 */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { createWakeUp } from '#base/wakeUp'
import type { PublishedPort } from '#cli/publishedPorts'
import { nodes } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { localPortKey, realNodeAddresses } from './localPortPlan.ts'
import type { ForwarderRun, OpenPort, PortForwarder } from './portForwarder.ts'

export interface PublishedPortsDeps {
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
  readonly forwarder: Pick<PortForwarder, 'current' | 'onChange'>
}

export interface PublishedPortsOptions {
  readonly ports: readonly PublishedPort[]
  /** Whether a node with this address is one of this cluster's real nodes. */
  readonly isReal: (address: string) => boolean
}

/** The pause before another attempt to bind a taken port. */
const retryMs = 2000

interface Opening {
  readonly log: Logger
  readonly open: Map<string, OpenPort>
  /** Ports whose refusal is logged already. */
  readonly refused: Set<string>
}

export function createPublishedPorts(deps: PublishedPortsDeps, options: PublishedPortsOptions): Component {
  return { name: 'published ports', run: (signal) => (options.ports.length === 0 ? Promise.resolve() : run(deps, options, signal)) }
}

async function run({ informers, clock, log, forwarder }: PublishedPortsDeps, { ports, isReal }: PublishedPortsOptions, signal: AbortSignal): Promise<void> {
  const informer = informers.of(nodes)
  const changes = createWakeUp()
  const registration = informer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring })
  forwarder.onChange(changes.ring)
  const opening: Opening = { log, open: new Map(), refused: new Set() }
  let before: ForwarderRun | undefined
  try {
    await informer.synced(signal)
    while (!signal.aborted) {
      const addresses = realNodeAddresses(informer.store.list(), isReal)
      const current = forwarder.current()
      // The ports of a process are closed with it.
      if (current !== before) opening.open.clear()
      before = current
      if (current) for (const port of ports) await ensureOpen(opening, current, port, addresses)
      const retry = current && opening.open.size < ports.length ? clock.timer(retryMs, changes.ring) : undefined
      await changes.wait(signal)
      retry?.cancel()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    registration.remove()
    for (const port of opening.open.values()) port.close()
  }
}

async function ensureOpen({ log, open, refused }: Opening, run: ForwarderRun, port: PublishedPort, addresses: readonly string[]): Promise<void> {
  const key = localPortKey(port)
  const targets = addresses.map((address) => ({ address, port: port.nodePort }))
  const there = open.get(key)
  if (there) {
    there.setTargets(targets)
    return
  }
  try {
    open.set(key, await run.open({ protocol: port.protocol, port: port.port, targets }))
    refused.delete(key)
  } catch (error) {
    if (!refused.has(key)) log.error(error, 'A published port cannot be opened on localhost', { port: port.port, protocol: port.protocol })
    refused.add(key)
  }
}
