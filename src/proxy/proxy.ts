/**
 * The service proxy of one node (L3): watches Services and EndpointSlices, makes a model of them for each address family, and runs the mode that keeps the
 * kernel in step with it. What another mode left on the host is removed at start. Upstream: cmd/kube-proxy, pkg/proxy (v1.36).
 */
import type { NodeServiceRules } from '#api/debug/nodeNetwork'
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { aborted } from '#base/orAborted'
import { createWakeUp, type WakeUp } from '#base/wakeUp'
import { endpointSlices, nodes, serviceCIDRs, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { EventRecorder } from '#client/eventRecorder'
import type { Exec } from '#host/exec'
import { addressRule } from './externalAddresses.ts'
import { noteIgnoredAddresses } from './ignoredAddressEvents.ts'
import { buildModel, EarlierRules, type Family, type ProxyModel, type ProxyModels } from './model.ts'
import { proxyModes } from './modes/index.ts'
import type { ProxyMode, ProxyModeDeps } from './modes/mode.ts'
import { createShownRules, type RunningProxy } from './shownRules.ts'

export interface ProxyDeps extends ProxyModeDeps {
  readonly informers: SharedInformerFactory
  /** Records which addresses of a Service are not served. */
  readonly events: EventRecorder
  /** The modes to choose from; absent: all. */
  readonly modes?: readonly ProxyMode[] | undefined
}

export interface ProxyConfig {
  readonly nodeName: string
  /** One range, or one of each family with a comma between. */
  readonly clusterCidr: string
  readonly serviceCidr: string
  /** A mode's name, or 'auto' for the first that this host can run, or 'none': another program serves Services, and what a mode left is removed. */
  readonly mode: string
}

/** The mode that leaves Services to another program, such as a network plugin with eBPF. */
export const noProxyMode = 'none'

const zoneLabel = 'topology.kubernetes.io/zone'

/** Changes within this time are one application. */
const settleMs = 10

export interface ServiceProxy extends Component {
  /** The kernel's rules of one Service. @param service namespace/name */
  serviceRules(service: string): Promise<NodeServiceRules>
}

export function createProxy(deps: ProxyDeps, config: ProxyConfig): ServiceProxy {
  if (config.mode === noProxyMode) return withoutProxy(deps)
  let running: RunningProxy | undefined
  const rulesIn = createShownRules(deps)
  const onRunning = (now: RunningProxy | undefined) => {
    running = now
  }
  return {
    name: 'kube-proxy',
    run: (signal) => runProxy(deps, config, onRunning, signal),
    serviceRules: async (service) => (running ? rulesIn(running, service) : { isStopped: true, note: 'the service proxy does not run' }),
  }
}

function withoutProxy(deps: ProxyDeps): ServiceProxy {
  return {
    name: 'kube-proxy',
    run: async (signal) => {
      await cleanUpOtherModes(deps, undefined)
      await aborted(signal)
    },
    serviceRules: async () => ({ isStopped: true, note: 'the service proxy is turned off' }),
  }
}

async function runProxy(deps: ProxyDeps, config: ProxyConfig, onRunning: (running: RunningProxy | undefined) => void, signal: AbortSignal): Promise<void> {
  const chosen = await chooseMode(deps, config.mode)
  const cleaned = cleanUpOtherModes(deps, chosen.mode)
  const changes = createWakeUp()
  const following = followCluster(deps, config, changes)
  try {
    await following.synced(signal)
    await cleaned
    changes.ring()
    const newest = () => {
      const model = following.model(chosen.families)
      onRunning({ mode: chosen.mode, model })
      return model
    }
    await chosen.mode.run(deps, modelsOf(newest, changes, deps), signal)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    onRunning(undefined)
    following.stop()
    await cleaned
  }
}

function modelsOf(newest: () => ProxyModel, changes: WakeUp, { clock }: ProxyDeps): ProxyModels {
  return {
    newest,
    next: async (signal) => {
      await changes.wait(signal)
      await clock.sleep(settleMs, signal)
      return newest()
    },
  }
}

/** Rings `changes` when a model of the cluster may differ from the one before. */
function followCluster(deps: ProxyDeps, config: ProxyConfig, changes: WakeUp) {
  const serviceInformer = deps.informers.of(services)
  const sliceInformer = deps.informers.of(endpointSlices)
  const nodeInformer = deps.informers.of(nodes)
  const rangeInformer = deps.informers.of(serviceCIDRs)
  const handler = { onAdd: changes.ring, onUpdate: (old: unknown, now: unknown) => (old === now ? undefined : changes.ring()), onDelete: changes.ring }
  let zone: string | undefined
  const followZone = ({ metadata }: Frozen<Node>) => {
    if (metadata.name !== config.nodeName || metadata.labels?.[zoneLabel] === zone) return
    zone = metadata.labels?.[zoneLabel]
    changes.ring()
  }
  const informers = [serviceInformer, sliceInformer, rangeInformer, nodeInformer]
  const registrations = [
    serviceInformer.addHandler(handler),
    sliceInformer.addHandler(handler),
    rangeInformer.addHandler(handler),
    nodeInformer.addHandler({ onAdd: followZone, onUpdate: (_, node) => followZone(node) }),
  ]
  const note = noteIgnoredAddresses(deps.events)
  const earlier = new EarlierRules()
  return {
    synced: (signal: AbortSignal) => Promise.all(informers.map((informer) => informer.synced(signal))),
    model: (families: readonly Family[]): ProxyModel => {
      const listed = serviceInformer.store.list()
      const serviceCidrs = [...config.serviceCidr.split(','), ...rangeInformer.store.list().flatMap(({ spec }) => spec?.cidrs ?? [])]
      const rule = addressRule(listed, serviceCidrs)
      note(listed, rule)
      const place = { nodeName: config.nodeName, zone }
      const clusterCidrs = config.clusterCidr.split(',')
      return buildModel({ services: listed, slices: sliceInformer.store.list(), place, clusterCidrs, serviceCidrs }, families, rule, earlier)
    },
    stop: () => {
      for (const registration of registrations) registration.remove()
    },
  }
}

interface ChosenMode {
  readonly mode: ProxyMode
  readonly families: readonly Family[]
}

/** A host without one of the families runs the proxy for the other, as upstream. */
async function chooseMode({ exec, log, modes = proxyModes }: ProxyDeps, name: string): Promise<ChosenMode> {
  const candidates = name === 'auto' ? modes : modes.filter((mode) => mode.name === name)
  if (candidates.length === 0) throw new Error(`proxy mode "${name}" is not supported; there are: ${modes.map((mode) => mode.name).join(', ')}`)
  const obstacles: string[] = []
  for (const mode of candidates) {
    const families = await usableFamilies(mode, exec, obstacles)
    if (families.length === 0) continue
    log.info('Using proxy mode', { mode: mode.name, families: families.join(',') })
    return { mode, families }
  }
  throw new Error(`no proxy mode works on this host: ${obstacles.join('; ')}`)
}

async function usableFamilies(mode: ProxyMode, exec: Exec, obstacles: string[]): Promise<Family[]> {
  const families: Family[] = []
  for (const family of ['IPv4', 'IPv6'] as const) {
    const obstacle = await mode.obstacle(exec, family)
    if (obstacle === undefined) families.push(family)
    else obstacles.push(`${mode.name} (${family}): ${obstacle}`)
  }
  return families
}

/** Rules of two modes at once would send a connection through both. Upstream: platformCleanup; a failure stops nothing there either. */
async function cleanUpOtherModes({ exec, log, modes = proxyModes }: ProxyDeps, chosen: ProxyMode | undefined): Promise<void> {
  for (const mode of modes) {
    if (mode === chosen) continue
    await mode.cleanUp(exec).catch((error) => log.error(error, 'Failed to remove the rules of another proxy mode', { mode: mode.name }))
  }
}
