/**
 * The service proxy of one node (L3): watches Services and EndpointSlices, makes a model of them for each address family, and runs the mode that keeps the
 * kernel in step with it. What another mode left on the host is removed at start. Upstream: cmd/kube-proxy, pkg/proxy (v1.36).
 */
import type { NodeServiceRules } from '#api/debug/nodeNetwork'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { aborted } from '#base/orAborted'
import { createWakeUp, type WakeUp } from '#base/wakeUp'
import { endpointSlices, nodes, serviceCIDRs, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { EventRecorder } from '#client/eventRecorder'
import type { Exec } from '#host/exec'
import { addressRule } from './externalAddresses.ts'
import { ProxyHealth } from './health.ts'
import { createHealthChecks, type HealthChecks } from './healthChecks.ts'
import { noteIgnoredAddresses } from './ignoredAddressEvents.ts'
import { buildModel, EarlierRules, type Family, type ProxyModel, type ProxyModels } from './model.ts'
import { proxyModes } from './modes/index.ts'
import type { ProxyMode, ProxyModeDeps } from './modes/mode.ts'
import { followNode } from './ownNode.ts'
import { createShownRules, type RunningProxy } from './shownRules.ts'
import { createSyncTracker, type SyncTracker } from './syncTracker.ts'

export interface ProxyDeps extends ProxyModeDeps {
  readonly informers: SharedInformerFactory
  /** Records which addresses of a Service are not served. */
  readonly events: EventRecorder
  /** Absent: health is not reported. */
  readonly health?: ProxyHealth | undefined
  /** The modes to choose from; absent: all. */
  readonly modes?: readonly ProxyMode[] | undefined
}

export interface ProxyConfig {
  readonly nodeName: string
  /** One range, or one of each family with a comma between. Empty: unknown. */
  readonly clusterCidr: string
  /** Ranges of cluster IPs that are known without a ServiceCIDR. Empty: none is. */
  readonly serviceCidr: string
  /** A mode's name, or 'auto' for the first that this host can run, or 'none': another program serves Services, and what a mode left is removed. */
  readonly mode: string
  /** Ranges of local addresses that node ports answer on, or `primary` alone: the addresses of the Node object. Absent or empty: every local address. */
  readonly nodePortAddresses?: readonly string[] | undefined
  /** The node's primary address, whatever the Node object says. */
  readonly primaryAddress?: string | undefined
  /** Pods of this node are recognized by the ranges of the Node object instead of `clusterCidr`. */
  readonly usesNodeCidrs?: boolean | undefined
  readonly masqueradeAll?: boolean | undefined
  /** The least time between two applications. Absent: as soon as changes settle. */
  readonly minSyncMs?: number | undefined
}

/** The mode that leaves Services to another program, such as a network plugin with eBPF. */
export const noProxyMode = 'none'

/** Services with this label are those of another proxy. */
const proxyNameLabel = 'service.kubernetes.io/service-proxy-name'
/** Slices of Services without a cluster IP. */
const headlessLabel = 'service.kubernetes.io/headless'

/** Changes within this time are one application. */
const settleMs = 10

export interface ServiceProxy extends Component {
  /** The kernel's rules of one Service. @param service namespace/name */
  serviceRules(service: string): Promise<NodeServiceRules>
  /** The mode that runs; empty: none was chosen yet. */
  mode(): string
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
    mode: () => running?.mode.name ?? '',
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
    mode: () => noProxyMode,
  }
}

async function runProxy(deps: ProxyDeps, config: ProxyConfig, onRunning: (running: RunningProxy | undefined) => void, signal: AbortSignal): Promise<void> {
  const health = deps.health ?? new ProxyHealth(deps.clock, Number.POSITIVE_INFINITY)
  const chosen = await chooseMode(deps, config.mode)
  health.serves(chosen.families)
  const tracker = createSyncTracker({ ...deps, health, families: chosen.families })
  tracker.otherChanged()
  const cleaned = cleanUpOtherModes(deps, chosen.mode)
  const changes = createWakeUp()
  const checks = createHealthChecks({ ...deps, health, nodeName: config.nodeName }, signal)
  const following = followCluster(deps, config, { changes, tracker, health, checks })
  try {
    await following.synced(signal)
    await cleaned
    changes.ring()
    const sync: SyncTracker = {
      ...tracker,
      ended: (model, seconds, failed) => {
        tracker.ended(model, seconds, failed)
        if (!failed) checks.applied()
      },
    }
    const newest = () => {
      const model = following.model(chosen.families)
      tracker.modelMade()
      onRunning({ mode: chosen.mode, model })
      return model
    }
    await chosen.mode.run({ ...deps, sync, families: chosen.families }, modelsOf(newest, changes, deps, config), signal)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    onRunning(undefined)
    following.stop()
    await cleaned
  }
}

function modelsOf(newest: () => ProxyModel, changes: WakeUp, { clock }: ProxyDeps, { minSyncMs = 0 }: ProxyConfig): ProxyModels {
  let madeMs = Number.NEGATIVE_INFINITY
  return {
    newest,
    next: async (signal) => {
      await changes.wait(signal)
      await clock.sleep(Math.max(settleMs, madeMs + minSyncMs - clock.monotonicMs()), signal)
      madeMs = clock.monotonicMs()
      return newest()
    },
  }
}

interface Follower {
  readonly changes: WakeUp
  readonly tracker: SyncTracker
  readonly health: ProxyHealth
  readonly checks: HealthChecks
}

/** Rings `changes` when a model of the cluster may differ from the one before. */
function followCluster(deps: ProxyDeps, config: ProxyConfig, follower: Follower) {
  const serviceInformer = deps.informers.of(services, { labelSelector: `!${proxyNameLabel}` })
  const sliceInformer = deps.informers.of(endpointSlices, { labelSelector: `!${headlessLabel}` })
  const nodeInformer = deps.informers.of(nodes)
  const rangeInformer = deps.informers.of(serviceCIDRs)
  const { changes, tracker } = follower
  const node = followNode(config, follower)
  const informers = [serviceInformer, sliceInformer, rangeInformer, nodeInformer]
  const registrations = [
    serviceInformer.addHandler(onChange((old, now) => tracker.serviceChanged(nameOf(now ?? old)), changes)),
    sliceInformer.addHandler(onChange(tracker.sliceChanged, changes)),
    rangeInformer.addHandler(onChange(tracker.otherChanged, changes)),
    nodeInformer.addHandler(node.handler),
  ]
  const note = noteIgnoredAddresses(deps.events)
  const earlier = new EarlierRules()
  return {
    synced: (signal: AbortSignal) => Promise.all(informers.map((informer) => informer.synced(signal))),
    model: (families: readonly Family[]): ProxyModel => {
      const listed = serviceInformer.store.list()
      const serviceCidrs = [...ranges(config.serviceCidr), ...rangeInformer.store.list().flatMap(({ spec }) => spec?.cidrs ?? [])]
      const rule = addressRule(listed, serviceCidrs)
      note(listed, rule)
      const place = { nodeName: config.nodeName, zone: node.zone() }
      const clusterCidrs = config.usesNodeCidrs ? node.podCidrs() : ranges(config.clusterCidr)
      const { masqueradeAll } = config
      const nodePortCidrs = node.nodePortCidrs()
      const slices = sliceInformer.store.list()
      follower.checks.take({ services: listed, slices, nodePortCidrs })
      return buildModel({ services: listed, slices, place, clusterCidrs, serviceCidrs, nodePortCidrs, masqueradeAll }, families, rule, earlier)
    },
    stop: () => {
      for (const registration of registrations) registration.remove()
    },
  }
}

const ranges = (text: string) => text.split(',').filter((range) => range !== '')

function nameOf(object: Frozen<KubeObject> | undefined): string {
  return `${object?.metadata.namespace}/${object?.metadata.name}`
}

function onChange<T>(act: (old: Frozen<T> | undefined, now: Frozen<T> | undefined) => void, changes: WakeUp) {
  const changed = (old: Frozen<T> | undefined, now: Frozen<T> | undefined) => {
    act(old, now)
    changes.ring()
  }
  return {
    onAdd: (now: Frozen<T>) => changed(undefined, now),
    onUpdate: (old: Frozen<T>, now: Frozen<T>) => (old === now ? undefined : changed(old, now)),
    onDelete: (old: Frozen<T>) => changed(old, undefined),
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
