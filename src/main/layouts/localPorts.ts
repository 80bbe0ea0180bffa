/**
 * Makes node ports and load balancers of real nodes answer on this host's localhost too (L5): opened and closed with their Services, on loopback addresses only.
 * The nodes do the balancing; a forwarder process reaches one of them. A port that cannot be opened gets an Event on its Service. Only
 * the log names the program of the host that has it, because users of the cluster need not know the host. Upstream's counterpart: port mappings of a node's
 * container.
 */
import path from 'node:path'
import type { Service } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { printable } from '#base/printable'
import { createWakeUp, type WakeUp } from '#base/wakeUp'
import { nodes, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { EventRecorder } from '#client/eventRecorder'
import type { FindPortHolder, PortHolder } from '#host/portHolder'
import { type LocalPort, type LocalPortPlan, localPortKey, planLocalPorts, type RefusedPort } from './localPortPlan.ts'
import { type ForwardedPort, type ForwarderRun, forwarderRole, type OpenPort, type PortForwarder } from './portForwarder.ts'

export interface LocalPortsDeps {
  readonly informers: SharedInformerFactory
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Logger
  readonly forwarder: Pick<PortForwarder, 'current' | 'onChange'>
  readonly holderOf: FindPortHolder
  /** The clusters by the ports of their APIs, whether they run or not. */
  readonly clustersByApiPort: () => Promise<ReadonlyMap<number, string>>
}

export interface LocalPortsOptions {
  /** The cluster's name. */
  readonly cluster: string
  /** Whether a node with this address is one of this cluster's real nodes. */
  readonly isReal: (address: string) => boolean
  /** Ports that are published, by `PROTOCOL/PORT`. */
  readonly published?: ReadonlySet<string>
}

/** The pause before another attempt to bind a taken port. */
const retryMs = 2000
/** Where another port for a load balancer is looked for: below the node ports and the kernel's ephemeral ones. */
const substitutes = { first: 20_000, count: 10_000, attempts: 8, step: 997 }

export function createLocalPorts(deps: LocalPortsDeps, options: LocalPortsOptions): Component {
  return { name: 'local-ports', run: (signal) => run(deps, options, signal) }
}

/** A port that is open, or waits for it. */
interface Entry {
  readonly uid: string | undefined
  targets: LocalPort['targets']
  /** Undefined while the port cannot be had. */
  open: OpenPort | undefined
  /** Serves the load balancer meanwhile. */
  substitute: { readonly port: number; readonly open: OpenPort } | undefined
  /** The Service has its Event. */
  isReported: boolean
}

interface Ports {
  readonly deps: LocalPortsDeps
  readonly cluster: string
  readonly entries: Map<string, Entry>
  /** Reasons that Services have an Event about, by Service and port. */
  reported: Set<string>
  /** Read once in each look at the ports, when a port is to be opened. */
  apiPorts: ReturnType<LocalPortsDeps['clustersByApiPort']> | undefined
}

interface Refusal {
  /** For users of the Service's namespace. */
  readonly reason: string
  /** For the host's user, when it says more. */
  readonly details?: string | undefined
  /** A process of this host has the port. */
  readonly isTaken: boolean
}

/** Both are absent when the forwarder has ended; the next forwarder is asked. */
interface Attempt {
  readonly open?: OpenPort
  readonly refusal?: Refusal
}

async function run(deps: LocalPortsDeps, { cluster, isReal, published }: LocalPortsOptions, signal: AbortSignal): Promise<void> {
  const serviceInformer = deps.informers.of(services)
  const nodeInformer = deps.informers.of(nodes)
  const changes = createWakeUp()
  const handler = { onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring }
  const registrations = [serviceInformer.addHandler(handler), nodeInformer.addHandler(handler)]
  deps.forwarder.onChange(changes.ring)
  const ports: Ports = { deps, cluster, entries: new Map(), reported: new Set(), apiPorts: undefined }
  let before: ForwarderRun | undefined
  try {
    await Promise.all([serviceInformer.synced(signal), nodeInformer.synced(signal)])
    while (!signal.aborted) {
      const plan = planLocalPorts(serviceInformer.store.list(), nodeInformer.store.list(), isReal, published)
      const forwarder = plan.ports.size > 0 || before ? deps.forwarder.current() : undefined
      // The ports of a process are closed with it.
      if (forwarder !== before) for (const entry of ports.entries.values()) forgetOpen(entry)
      before = forwarder
      closeOthers(ports, plan)
      ports.apiPorts = undefined
      if (forwarder) for (const port of plan.ports.values()) await tryEnsureOpen(ports, plan, forwarder, port)
      // Not before the node ports are open, which are then the way out.
      if (forwarder || plan.ports.size === 0) reportRefused(ports, plan)
      const isMissing = forwarder !== undefined && [...ports.entries.values()].some(({ open }) => !open)
      await nextLook(deps.clock, changes, isMissing, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    for (const registration of registrations) registration.remove()
    for (const entry of ports.entries.values()) closeEntry(entry)
  }
}

async function nextLook(clock: Clock, changes: WakeUp, isMissing: boolean, signal: AbortSignal): Promise<void> {
  const retry = isMissing ? clock.timer(retryMs, changes.ring) : undefined
  await changes.wait(signal)
  retry?.cancel()
}

function forgetOpen(entry: Entry): void {
  entry.open = undefined
  entry.substitute = undefined
}

function closeEntry(entry: Entry): void {
  entry.open?.close()
  entry.substitute?.open.close()
}

/** Established connections stay, as they do on the nodes when a Service is deleted. */
function closeOthers({ entries }: Ports, { ports }: LocalPortPlan): void {
  for (const [key, entry] of [...entries]) {
    if (ports.get(key)?.service.metadata.uid === entry.uid) continue
    entries.delete(key)
    closeEntry(entry)
  }
}

function reportRefused(ports: Ports, { refused }: LocalPortPlan): void {
  const reported = new Set<string>()
  for (const one of refused) {
    const key = `${one.service.metadata.uid} ${localPortKey(one)} ${one.reason}`
    reported.add(key)
    if (!ports.reported.has(key)) report(ports.deps, one, one, instead(ports, one))
  }
  ports.reported = reported
}

/** Logs an error of one port, which does not affect other ports; the next look tries the port again. */
async function tryEnsureOpen(ports: Ports, plan: LocalPortPlan, forwarder: ForwarderRun, wanted: LocalPort): Promise<void> {
  try {
    await ensureOpen(ports, plan, forwarder, wanted)
  } catch (error) {
    ports.deps.log.error(error, 'A port could not be opened', { port: wanted.port, service: keyOf(wanted.service) })
  }
}

async function ensureOpen(ports: Ports, plan: LocalPortPlan, forwarder: ForwarderRun, wanted: LocalPort): Promise<void> {
  const key = localPortKey(wanted)
  const entry: Entry = ports.entries.get(key) ?? {
    uid: wanted.service.metadata.uid,
    targets: wanted.targets,
    open: undefined,
    substitute: undefined,
    isReported: false,
  }
  ports.entries.set(key, entry)
  retarget(entry, wanted)
  if (entry.open) return
  const { open, refusal } = await tryOpen(ports, forwarder, wanted)
  entry.open = open
  if (open) onOpened(ports.deps, wanted, entry)
  else if (refusal) {
    if (wanted.use === 'load balancer' && !entry.substitute && instead(ports, wanted) === undefined)
      entry.substitute = await openSubstitute(ports, plan, forwarder, wanted)
    if (!entry.isReported) report(ports.deps, wanted, await withHolder(ports, wanted, refusal), entry.substitute?.port ?? instead(ports, wanted))
    entry.isReported = true
  }
}

function retarget(entry: Entry, { targets }: LocalPort): void {
  if (JSON.stringify(entry.targets) === JSON.stringify(targets)) return
  entry.targets = targets
  entry.open?.setTargets(targets)
  entry.substitute?.open.setTargets(targets)
}

const inUse = 'it is in use on the host'

async function tryOpen(ports: Ports, forwarder: ForwarderRun, wanted: ForwardedPort): Promise<Attempt> {
  const { protocol, port } = wanted
  // Not left to the bind: it may have one of the loopback addresses only, or belong to a cluster that is stopped.
  ports.apiPorts ??= ports.deps.clustersByApiPort()
  const apiOf = protocol === 'TCP' ? (await ports.apiPorts).get(port) : undefined
  if (apiOf !== undefined) return { refusal: { reason: inUse, details: `it is the port of the API of cluster ${apiOf}`, isTaken: false } }
  try {
    return { open: await forwarder.open(wanted) }
  } catch (error) {
    const { code, message, address } = error as NodeJS.ErrnoException & { readonly address?: string }
    if (address === undefined) {
      ports.deps.log.warn('A port could not be handed to the port forwarder', { port, why: message })
      return {}
    }
    const reason = reasonsOfBinds.get(code ?? '') ?? 'it cannot be opened on the host'
    return { refusal: { reason, details: `${address === '::1' ? '[::1]' : address}:${port}: ${message}`, isTaken: code === 'EADDRINUSE' } }
  }
}

const reasonsOfBinds: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', inUse],
  ['EACCES', `Skiff may not bind it: ports below the host's net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE`],
])

/** Adds the holder of the port to the details. Called only for a refusal that is reported, because it searches all processes of the host. */
async function withHolder(ports: Ports, { protocol, port }: ForwardedPort, refusal: Refusal): Promise<Refusal> {
  if (!refusal.isTaken) return refusal
  return { ...refusal, details: `${refusal.details}; held by ${nameOf(await ports.deps.holderOf(protocol, port), ports)}` }
}

function nameOf(holder: PortHolder | undefined, { cluster }: Ports): string {
  if (!holder) return 'another process'
  const { pid, program, words } = holder
  const other = clusterOf(words)
  if (other === undefined) return `${printable(program)} (pid ${pid})`
  return `${other === cluster ? 'this cluster' : `cluster ${printable(other)}`} (pid ${pid})`
}

/** The cluster whose process this is, by its command line: a forwarder, a server or a balancer. */
function clusterOf(words: readonly string[]): string | undefined {
  const after = (role: string, flag: string) => {
    const at = words.indexOf(role)
    return at >= 0 && words[at + 1] === flag ? words[at + 2] : undefined
  }
  const dir = after('server', '--cluster-dir') ?? after('balancer', '--cluster-dir')
  return after(...forwarderRole) ?? (dir === undefined ? undefined : path.basename(dir))
}

/** The node port, when it is open. */
function instead({ entries }: Ports, { protocol, nodePort }: Pick<LocalPort, 'protocol' | 'nodePort'>): number | undefined {
  return nodePort !== undefined && entries.get(localPortKey({ protocol, port: nodePort }))?.open ? nodePort : undefined
}

/** A free port that depends on the Service and its port only, so that it is the same one the next time. Undefined when there is none, or no forwarder any more. */
async function openSubstitute(ports: Ports, plan: LocalPortPlan, forwarder: ForwarderRun, wanted: LocalPort): Promise<Entry['substitute']> {
  let place = 0
  for (const character of `${keyOf(wanted.service)} ${wanted.port}`) place = (place * 31 + (character.codePointAt(0) ?? 0)) % substitutes.count
  for (let attempt = 0; attempt < substitutes.attempts; attempt++) {
    const port = substitutes.first + ((place + attempt * substitutes.step) % substitutes.count)
    if (plan.ports.has(localPortKey({ protocol: wanted.protocol, port }))) continue
    const { open, refusal } = await tryOpen(ports, forwarder, { ...wanted, port })
    if (open) return { port, open }
    if (!refusal) return undefined
  }
  return undefined
}

function onOpened({ events }: LocalPortsDeps, { service, use, port }: LocalPort, entry: Entry): void {
  if (entry.isReported) events.event(service, 'Normal', 'LocalPortOpened', `${nameOfUse(use)} ${port} is reachable on localhost now`)
  entry.isReported = false
  entry.substitute?.open.close()
  entry.substitute = undefined
}

const nameOfUse = (use: LocalPort['use']) => (use === 'node port' ? 'Node port' : 'Port')

function report(
  { events, log }: LocalPortsDeps,
  refused: Pick<RefusedPort, 'service' | 'protocol' | 'port'> & { readonly use?: LocalPort['use'] },
  { reason, details }: Pick<Refusal, 'reason' | 'details'>,
  other: number | undefined,
): void {
  const { service, protocol, port, use = 'load balancer' } = refused
  const number = protocol === 'TCP' ? String(port) : `${port}/${protocol}`
  const hint = other === undefined ? 'the nodes’ own addresses serve it' : `use localhost:${other}`
  events.event(service, 'Warning', 'LocalPortUnavailable', `${nameOfUse(use)} ${number} is not reachable on localhost: ${reason}; ${hint}`)
  log.warn('A port cannot be opened on localhost', { port: number, service: keyOf(service as Frozen<Service>), why: details ?? reason })
}
