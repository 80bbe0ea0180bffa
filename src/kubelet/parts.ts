/**
 * Creates the parts of a kubelet in the order of their dependencies (L3). Where two parts need each other, a notifier or the table of pods is created before
 * both. kubelet.ts runs what is created here.
 */
import { readFile } from 'node:fs/promises'
import type { Service } from '#api/gen/types/core.v1'
import { services } from '#client/builtIn'
import { createEventRecorder, type EventRecorder } from '#client/eventRecorder'
import type { RuntimeStatus } from '#grpc/criTypes'
import { makeDirectory } from '#host/files'
import { type Allocations, createAllocations } from './allocation/allocations.ts'
import { checkAllowedSysctls } from './allocation/sysctls.ts'
import { BackOff } from './core/backOff.ts'
import type { KubeletConfig } from './core/config.ts'
import type { KubeletBase, KubeletContext, KubeletDeps } from './core/context.ts'
import { equal } from './core/equal.ts'
import type { MachineInfo } from './core/host.ts'
import { type KubeletSources, ownSources } from './core/kubeletSources.ts'
import type { Followed } from './core/listWatch.ts'
import { createNotifier } from './core/notifier.ts'
import { createObjectCache } from './core/objectCache.ts'
import { gateEnabled } from './core/resourceConfig.ts'
import { createEvictionManager, type EvictionManager } from './eviction/evictionManager.ts'
import type { GarbageDeps } from './gc.ts'
import { createImageGC } from './images/imageGc.ts'
import { createImageManager } from './images/imageManager.ts'
import { createNodeManager, type NodeManager, type NodeMemory } from './node/nodeManager.ts'
import { createNodeShutdown, type NodeShutdown } from './node/nodeShutdown.ts'
import { nodeAllocatable } from './node/nodeStatus.ts'
import { conditionProblems, createRuntimeHealth, type RuntimeHealth } from './node/runtimeHealth.ts'
import { createPodAdmission } from './pods/podAdmission.ts'
import { createPodEvents, type PodEvents } from './pods/podEvents.ts'
import { createPodMetrics } from './pods/podMetrics.ts'
import { createPodResizer } from './pods/podResizer.ts'
import { createPodTable, type PodEnding, type PodTable } from './pods/podTable.ts'
import { createPodWorkers, type PodWorkers } from './pods/podWorkers.ts'
import { createStatusManager, type StatusManager } from './pods/statusManager.ts'
import type { PodMachinery } from './pods/syncPod.ts'
import { createUserNamespaces } from './pods/userNamespaces.ts'
import { createProbeManager, type ProbeManager } from './probes/probeManager.ts'
import { type CgroupTree, createCgroupTree } from './resources/cgroupTree.ts'
import { checkKernelTunables } from './resources/kernelTunables.ts'
import { createResourceManager } from './resources/resourceManager.ts'
import { instrumentRuntime } from './runtime/instrumentedRuntime.ts'
import { limitStarts } from './runtime/limitedRuntime.ts'
import { createStaticPods, type StaticPods } from './sources/staticPods.ts'
import { type CsiDrivers, createCsiDrivers } from './volumes/csi/drivers.ts'
import { createLocalPathRemovals, type LocalPathRemovals } from './volumes/localPathRemovals.ts'
import type { PodCertificates } from './volumes/podCertificates.ts'
import { createVolumeManager, type VolumeManager } from './volumes/volumeManager.ts'
import { createVolumesInUse, untracked } from './volumes/volumesInUse.ts'

export interface KubeletParts {
  readonly context: KubeletContext
  readonly services: ServiceMirror
  readonly workers: PodWorkers
  readonly statuses: StatusManager
  readonly probes: ProbeManager
  readonly volumes: VolumeManager
  readonly csi: CsiDrivers
  readonly localPaths: LocalPathRemovals
  readonly allocations: Allocations
  readonly cgroups: CgroupTree
  readonly events: PodEvents
  readonly eviction: EvictionManager
  readonly node: NodeManager
  readonly shutdown: NodeShutdown
  readonly statics: StaticPods
  readonly garbage: GarbageDeps
  /** Called once every source has delivered its first list of pods. */
  markSourcesReady(): void
  /** After the signal aborted: resolves when no certificates are requested any more. */
  certificatesDone(): Promise<void>
}

/** The calls by which an earlier part reaches a later one. */
function createNotifiers() {
  return {
    /** uids of pods that need another sync. */
    wakeUps: createNotifier<readonly string[]>(),
    endings: createNotifier<PodEnding>(),
    /** uids of static pods whose mirror is new and so has no status yet. */
    newMirrors: createNotifier<string>(),
    /** The node's shutdown began or was cancelled. */
    shutdowns: createNotifier(),
  }
}

type Notifiers = ReturnType<typeof createNotifiers>
type ServiceMirror = Followed<Service>

/** @param memory what is known of the node already */
export async function createParts(deps: KubeletDeps, config: KubeletConfig, memory: NodeMemory, signal: AbortSignal): Promise<KubeletParts> {
  await checkNode(deps, config)
  const notifiers = createNotifiers()
  const table = createPodTable(signal)
  const sources = deps.sources ?? ownSources(deps)
  const serviceMirror = sources.objects(services, {}, signal)
  const csi = createCsiDrivers({ ...deps, config })
  const context = await createContext(deps, config, { notifiers, table, sources, services: serviceMirror, csi }, signal)
  const wake = notifiers.wakeUps.notify
  const allocations = await createAllocations({ context, wake, pods: table.present, room: () => resizeRoom(context) })
  const cgroups = createCgroupTree(context, allocations.allocatedPods)
  await cgroups.setUp()
  deps.metrics.gauge({ name: 'kubelet_node_name', help: 'Always 1: the label is the name of the node.', labels: ['node'] }).set(1, { node: config.nodeName })
  const events = createPodEvents(context)
  const relists = !deps.runtime.eventsAreComplete && config.relistPeriodMs > 0
  const health = createRuntimeHealth(context, () => (relists ? events.lastRelist().atMs : undefined))
  const inUse = createVolumesInUse(deps.clock, () => node.refresh())
  let certificates: Promise<PodCertificates> | undefined
  const volumes = createVolumeManager(context, undefined, {
    csi,
    inUse: context.isStandalone ? untracked : inUse,
    certificates: () => (certificates ??= import('./volumes/podCertificates.ts').then((it) => it.startPodCertificates(context, table.list, signal))),
  })
  await volumes.restoreInUse()
  const eviction = createEvictionManager(context, volumes)
  const shutdown = createNodeShutdown(context, notifiers.shutdowns.notify)
  const localPaths = createLocalPathRemovals(context, volumes)
  const nodeDeps = { pressure: eviction.pressure, health, shutdownProblem: shutdown.problem, onNode: localPaths.noticed, inUse }
  const node = createNodeManager(context, nodeDeps, memory)
  const statics = createStaticPods(context, notifiers.newMirrors.notify)
  const metrics = createPodMetrics(deps.metrics, deps.clock)
  const images = await createImageManager(context)
  const probes = createProbeManager(context, (uid) => wake([uid]), signal)
  const couldHaveRunningContainers = (uid: string) => !table.isTerminated(uid)
  const statusDeps = { apiPod: statics.apiPod, couldHaveRunningContainers, onChanged: metrics.ended, onReported: metrics.starts.reported }
  const statuses = createStatusManager(context, statusDeps, signal)
  const machinery: PodMachinery = {
    ...{ context, images, volumes, probes, statuses, events, allocations, cgroups, metrics },
    crashLoop: crashLoopBackOff(context),
    networkProblem: () => networkProblem(context, health),
    resizer: createPodResizer(context, allocations, cgroups),
    admit: createPodAdmission({
      shutdownRefusal: shutdown.refusal,
      context,
      allocations,
      preemptions: metrics.preemptions,
      pressure: eviction.pressure,
      node: node.node,
      end: (uid, ending) => {
        notifiers.endings.notify({ uid, ending, graceSeconds: undefined })
        return table.ended(uid)
      },
    }),
  }
  const workers = createPodWorkers(machinery, table, signal)
  subscribe(notifiers, workers, statuses, node)
  let sourcesReady = false
  const garbage = { context, workers, images: createImageGC(context, images), volumes, allocations, sourcesReady: () => sourcesReady }
  const markSourcesReady = () => {
    sourcesReady = true
  }
  return {
    context,
    services: serviceMirror,
    workers,
    statuses,
    probes,
    volumes,
    csi,
    localPaths,
    allocations,
    cgroups,
    events,
    eviction,
    node,
    shutdown,
    statics,
    garbage,
    markSourcesReady,
    certificatesDone: async () => (await certificates?.catch(() => undefined))?.done,
  }
}

function subscribe({ wakeUps, endings, newMirrors, shutdowns }: Notifiers, workers: PodWorkers, statuses: StatusManager, node: NodeManager): void {
  wakeUps.subscribe((uids) => {
    for (const uid of uids) workers.wake(uid)
  })
  endings.subscribe(workers.end)
  newMirrors.subscribe(statuses.resend)
  shutdowns.subscribe(node.refresh)
}

interface ContextParts {
  readonly notifiers: Notifiers
  readonly table: PodTable
  readonly sources: KubeletSources
  readonly services: ServiceMirror
  readonly csi: CsiDrivers
}

async function createContext(deps: KubeletDeps, config: KubeletConfig, parts: ContextParts, signal: AbortSignal): Promise<KubeletContext> {
  const { table, sources, services, csi } = parts
  const { wakeUps } = parts.notifiers
  const machine = await machineInfo(deps, config)
  const instrumented = instrumentRuntime(deps.runtime, deps.metrics, deps.clock)
  const runtime = deps.runtime.usesHost ? limitStarts(instrumented, config.maxConcurrentPodStarts) : instrumented
  const base: KubeletBase = {
    ...deps,
    runtime,
    config,
    machineInfo: machine,
    sources,
    recorder: createRecorder(deps, config, signal),
    objects: createObjectCache({ ...deps, sources }, wakeUps.notify, signal),
    userNamespaces: await createUserNamespaces({ ...deps, config, runtime }),
    services: services.list,
  }
  const resources = await createResourceManager({ context: base, wake: wakeUps.notify, pods: table.list, pluginHandlers: [csi.handler] })
  // Each pod asks for it, and only devices and huge pages change it.
  let known: { readonly handedOut: ReturnType<typeof resources.allocatable>; readonly allocatable: KubeletContext['allocatable'] } | undefined
  return {
    ...base,
    resources,
    get allocatable() {
      const handedOut = resources.allocatable()
      if (!known || !equal(known.handedOut, handedOut)) known = { handedOut, allocatable: nodeAllocatable(machine, config, handedOut) }
      return known.allocatable
    },
  }
}

async function machineInfo({ machine, host }: KubeletDeps, { rootDirectory }: KubeletConfig): Promise<MachineInfo> {
  if (machine) return machine
  if (!host) throw new Error('a kubelet needs a host or the facts of a simulated machine')
  await makeDirectory(host.path(rootDirectory), 0o750)
  return host.machine(rootDirectory)
}

/** @throws Error for settings that this machine cannot have */
async function checkNode({ host, isStandalone, runtime }: KubeletDeps, config: KubeletConfig): Promise<void> {
  checkAllowedSysctls(config.allowedUnsafeSysctls)
  if (host && config.protectKernelDefaults) await checkKernelTunables((name) => readFile(`/proc/sys/${name}`, 'utf8'))
  // With an API server the node manager takes the range from the Node.
  if (isStandalone && config.podCIDR) runtime.updatePodCidr(config.podCIDR)
}

export function createRecorder(deps: KubeletDeps, { nodeName }: KubeletConfig, signal: AbortSignal): EventRecorder {
  if (deps.isStandalone) return { event() {}, async flush() {} }
  const own = { ...deps, client: deps.eventClient ?? deps.client }
  const source = { component: 'kubelet', host: nodeName }
  return deps.eventWriter?.recorder(own.client, source) ?? createEventRecorder(own, source, signal)
}

/** Why pods without the host's network cannot start now. A problem in the last known status is confirmed by a fresh one before it stops a pod. */
async function networkProblem({ runtime }: KubeletContext, health: RuntimeHealth): Promise<string | undefined> {
  const problemOf = (status: RuntimeStatus | undefined) => conditionProblems((status?.conditions ?? []).filter(({ type }) => type === 'NetworkReady'))[0]
  return problemOf(health.status()) && problemOf(await runtime.status())
}

function crashLoopBackOff({ clock, config }: KubeletContext): BackOff {
  const { containerRestartInitialBackOffMs: initialMs, containerRestartMaxBackOffMs: maxMs } = config
  return new BackOff(clock, Math.min(initialMs, maxMs), maxMs)
}

function resizeRoom({ allocatable, config, resources }: KubeletContext) {
  const { cpuPolicy, memoryPolicy } = resources
  return { allocatable, cpuPolicy, memoryPolicy, podLevel: gateEnabled(config, 'InPlacePodLevelResourcesVerticalScaling') }
}
