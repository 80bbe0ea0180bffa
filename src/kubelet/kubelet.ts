/**
 * The kubelet put together (L3): its node in the API, its pods from the API, their workers, probes, volumes, images and garbage.
 * Real and simulated nodes are this same kubelet over another RuntimeService. Upstream: kubelet/kubelet.go (v1.36).
 */
import { setMaxListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Component } from '#base/component'
import { pods, services } from '#client/builtIn'
import { createEventRecorder, type EventRecorder } from '#client/eventRecorder'
import type { RuntimeStatus } from '#grpc/criTypes'
import { createAllocations } from './allocation/allocations.ts'
import { checkAllowedSysctls } from './allocation/sysctls.ts'
import { BackOff } from './core/backOff.ts'
import { type KubeletConfig, kubeletConfig } from './core/config.ts'
import { type FrozenPod, isStaticPod } from './core/containers.ts'
import type { KubeletContext, KubeletDeps } from './core/context.ts'
import type { MachineInfo } from './core/host.ts'
import type { KubeletView } from './core/kubeletView.ts'
import { isolated, listWatch, mirror } from './core/listWatch.ts'
import { createObjectCache } from './core/objectCache.ts'
import { gateEnabled } from './core/resourceConfig.ts'
import type { ResourceManager } from './core/resourceService.ts'
import type { RuntimeService } from './core/runtimeService.ts'
import { createEvictionManager } from './eviction/evictionManager.ts'
import { collectGarbage, reclaimOf, removeOrphans } from './gc.ts'
import { createImageGC } from './images/imageGc.ts'
import { createImageManager } from './images/imageManager.ts'
import { runLogRotation } from './logs/logRotation.ts'
import { createNodeManager, type NodeManager } from './node/nodeManager.ts'
import { createNodeShutdown, type NodeShutdown, shutdownPeriods } from './node/nodeShutdown.ts'
import { nodeAllocatable } from './node/nodeStatus.ts'
import { watchOom } from './node/oomWatcher.ts'
import { conditionProblems, createRuntimeHealth, type RuntimeHealth } from './node/runtimeHealth.ts'
import { watchForShutdown } from './node/shutdownSignal.ts'
import { createPodAdmission } from './pods/podAdmission.ts'
import { createPodEvents, type PodEvents } from './pods/podEvents.ts'
import { createPodMetrics } from './pods/podMetrics.ts'
import { createPodResizer } from './pods/podResizer.ts'
import { createPodWorkers, type PodWorkers } from './pods/podWorkers.ts'
import { createStatusManager, type StatusManager } from './pods/statusManager.ts'
import { createUserNamespaces } from './pods/userNamespaces.ts'
import { createProbeManager, type ProbeManager } from './probes/probeManager.ts'
import { createCgroupTree } from './resources/cgroupTree.ts'
import { checkKernelTunables } from './resources/kernelTunables.ts'
import { createResourceManager } from './resources/resourceManager.ts'
import { instrumentRuntime } from './runtime/instrumentedRuntime.ts'
import { createStaticPods, type StaticPods } from './sources/staticPods.ts'
import { createVolumeManager, type VolumeManager } from './volumes/volumeManager.ts'

export interface Kubelet extends Component {
  readonly view: KubeletView
  /** Resolves once the Node object is there. */
  readonly registered: Promise<void>
}

interface Running {
  readonly context: KubeletContext
  readonly workers: PodWorkers
  readonly statuses: StatusManager
  readonly probes: ProbeManager
  readonly volumes: VolumeManager
  latestLoopEntryMs(): number
}

/** A kubelet for one node. */
export function createKubelet(deps: KubeletDeps, settings: Partial<KubeletConfig> & Pick<KubeletConfig, 'nodeName'>): Kubelet {
  const config = kubeletConfig(settings)
  let running: Running | undefined
  let markRegistered = () => {}
  const registered = new Promise<void>((resolve) => {
    markRegistered = resolve
  })
  const list = () => running?.workers.list() ?? []
  return {
    name: 'kubelet',
    registered,
    view: {
      config,
      runtime: deps.runtime,
      pods: list,
      pod: (namespace, name) => list().find((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name),
      podStatus: (uid) => running?.statuses.get(uid),
      context: () => running?.context,
      volumeStatistics: async (podUid, measures) => (await running?.volumes.statistics(podUid, measures)) ?? [],
      probeMetrics: () => running?.probes.metricsText() ?? '',
      latestLoopEntryMs: () => running?.latestLoopEntryMs(),
    },
    run: async (signal) => {
      // Stops everything together, also when one part fails.
      const stop = new AbortController()
      const all = AbortSignal.any([signal, stop.signal])
      // Every watch and wait of the node listens to it: many listeners are no leak here.
      setMaxListeners(0, all)
      try {
        await runKubelet(
          deps,
          config,
          all,
          (started) => {
            running = started
          },
          markRegistered,
        )
      } finally {
        stop.abort()
        await running?.workers.settled()
      }
    },
  }
}

async function machineInfo(deps: KubeletDeps): Promise<MachineInfo> {
  const info = deps.machine ?? (await deps.host?.machine())
  if (!info) throw new Error('a kubelet needs a host or the facts of a simulated machine')
  return info
}

/** @throws Error for settings that this machine cannot have */
async function checkNode({ host, isStandalone, runtime }: KubeletDeps, config: KubeletConfig): Promise<void> {
  checkAllowedSysctls(config.allowedUnsafeSysctls)
  if (host && config.protectKernelDefaults) await checkKernelTunables((name) => readFile(`/proc/sys/${name}`, 'utf8'))
  // Others get their range from the API.
  if (isStandalone && config.podCIDR) runtime.updatePodCidr(config.podCIDR)
}

function createRecorder(deps: KubeletDeps, { nodeName }: KubeletConfig, signal: AbortSignal): EventRecorder {
  if (deps.isStandalone) return { event() {}, async flush() {} }
  return createEventRecorder({ ...deps, client: deps.eventClient ?? deps.client }, { component: 'kubelet', host: nodeName }, signal)
}

/** Parts that others know of before they are made. */
interface Late {
  workers?: PodWorkers
  statuses?: StatusManager
  resources?: ResourceManager
  node?: NodeManager
  sourcesReady?: boolean
}

async function runKubelet(
  deps: KubeletDeps,
  config: KubeletConfig,
  signal: AbortSignal,
  onStarted: (running: Running) => void,
  onRegistered: () => void,
): Promise<void> {
  await checkNode(deps, config)
  const machine = await machineInfo(deps)
  const instrumented = instrumentRuntime(deps.runtime, deps.metrics, deps.clock)
  const limited = deps.runtime.usesHost ? limitStarts(instrumented, config.maxConcurrentPodStarts) : instrumented
  const late: Late = {}
  const wakeAll = (uids: readonly string[]) => {
    for (const uid of uids) late.workers?.wake(uid)
  }
  const serviceMirror = mirror(deps.client.of(services), {}, deps, signal)
  const context: KubeletContext = {
    ...deps,
    runtime: limited,
    config,
    machineInfo: machine,
    get allocatable() {
      return nodeAllocatable(machine, config, late.resources?.allocatable())
    },
    resources: () => {
      if (!late.resources) throw new Error('the resource manager is not there yet')
      return late.resources
    },
    recorder: createRecorder(deps, config, signal),
    objects: createObjectCache(deps, wakeAll, signal),
    userNamespaces: await createUserNamespaces({ ...deps, config, runtime: limited }),
    services: () => serviceMirror.list(),
  }
  const pods = () => late.workers?.list() ?? []
  late.resources = await createResourceManager({ context, wake: wakeAll, pods })
  const allocations = await createAllocations({ context, wake: wakeAll, pods, room: () => resizeRoom(context) })
  const cgroups = createCgroupTree(context, allocations.allocatedPods)
  await cgroups.setUp()
  deps.metrics.gauge({ name: 'kubelet_node_name', help: 'Always 1: the label is the name of the node.', labels: ['node'] }).set(1, { node: config.nodeName })
  const events = createPodEvents(context)
  const relists = !deps.runtime.eventsAreComplete && config.relistPeriodMs > 0
  const health = createRuntimeHealth(context, () => (relists ? events.lastRelist().atMs : undefined))
  const volumes = createVolumeManager(context)
  const eviction = createEvictionManager(context, volumes)
  const shutdown = createNodeShutdown(context, () => late.node?.refresh())
  const statics = createStaticPods(context, (uid) => late.statuses?.resend(uid))
  const metrics = createPodMetrics(deps.metrics, deps.clock)
  const couldHaveRunningContainers = (uid: string) => late.workers?.isTerminated(uid) === false
  const machinery = {
    context,
    images: await createImageManager(context),
    volumes,
    probes: createProbeManager(context, (uid) => wakeAll([uid]), signal),
    statuses: createStatusManager(
      context,
      { apiPod: statics.apiPod, couldHaveRunningContainers, onChanged: metrics.ended, onReported: metrics.starts.reported },
      signal,
    ),
    crashLoop: crashLoopBackOff(context),
    networkProblem: () => networkProblem(context, health),
    events,
    allocations,
    cgroups,
    resizer: createPodResizer(context, allocations, cgroups),
    metrics,
    admit: createPodAdmission({
      shutdownRefusal: shutdown.refusal,
      context,
      allocations,
      preemptions: metrics.preemptions,
      pressure: eviction.pressure,
      node: () => late.node?.node(),
      end: async (uid, ending) => {
        late.workers?.end(uid, ending, undefined)
        await late.workers?.ended(uid)
      },
    }),
  }
  const workers = createPodWorkers(machinery, signal)
  late.workers = workers
  late.statuses = machinery.statuses
  let loopEntryMs = context.clock.now()
  onStarted({ context, workers, statuses: machinery.statuses, probes: machinery.probes, volumes, latestLoopEntryMs: () => loopEntryMs })
  const node = createNodeManager(context, { pressure: eviction.pressure, health, shutdownProblem: shutdown.problem })
  late.node = node
  void node.registered.then(onRegistered)
  const garbage = {
    context,
    workers,
    images: createImageGC(context, machinery.images),
    volumes: machinery.volumes,
    allocations,
    sourcesReady: () => late.sourcesReady === true,
  }
  const allListed = () => {
    late.sourcesReady = true
    return removeOrphans(garbage)
  }
  await Promise.all([
    ...(deps.isStandalone ? [] : [node.run(signal)]),
    context.resources().run(signal),
    cgroups.run(signal),
    allocations.run(signal),
    serviceMirror.done,
    serviceMirror.synced.then(() => (signal.aborted ? undefined : watchPods(context, workers, statics, allListed, events, signal))),
    statics.run(workers, signal),
    collectGarbage(
      garbage,
      () => {
        loopEntryMs = context.clock.now()
      },
      signal,
    ),
    runLogRotation(context, signal),
    eviction.run(workers, reclaimOf(garbage), signal),
    ...(deps.host ? [watchOom(context, signal)] : []),
    ...followShutdown(context, shutdown, workers, signal),
  ])
}

/** Why a pod with a network of its own cannot be started. What was last heard is asked for again before it keeps anybody from starting. */
async function networkProblem({ runtime }: KubeletContext, health: RuntimeHealth): Promise<string | undefined> {
  const problemOf = (status: RuntimeStatus | undefined) => conditionProblems((status?.conditions ?? []).filter(({ type }) => type === 'NetworkReady'))[0]
  return problemOf(health.status()) && problemOf(await runtime.status())
}

/** Only of nodes whose pods are given time when the machine goes down. */
function followShutdown(context: KubeletContext, shutdown: NodeShutdown, workers: PodWorkers, signal: AbortSignal): Promise<void>[] {
  const periods = shutdownPeriods(context.config)
  if (periods.length === 0) return []
  const periodMs = periods.reduce((sum, { shutdownGracePeriodSeconds }) => sum + shutdownGracePeriodSeconds * 1000, 0)
  const listener = { shutDown: () => shutdown.shutDown(workers, signal), cancel: shutdown.cancel }
  return [shutdown.restore(), watchForShutdown(context, listener, periodMs, signal)]
}

function crashLoopBackOff({ clock, config }: KubeletContext): BackOff {
  const { containerRestartInitialBackOffMs: initialMs, containerRestartMaxBackOffMs: maxMs } = config
  return new BackOff(clock, Math.min(initialMs, maxMs), maxMs)
}

/** Follows the pods of this node. What runs without a pod is removed once all sources have been heard, and not before: who is not known yet may be about to be. */
async function watchPods(
  context: KubeletContext,
  workers: PodWorkers,
  statics: StaticPods,
  onAllListed: () => Promise<void>,
  events: PodEvents,
  signal: AbortSignal,
): Promise<void> {
  let first = true
  const alone = (pod: FrozenPod, call: () => void) => isolated(context.log, pod, call)
  const take = (pod: FrozenPod) => {
    if (!statics.mirrorSeen(pod, false)) workers.update(pod)
  }
  const handler = {
    replace: (items: readonly FrozenPod[]) => {
      const uids = new Set(items.map((pod) => pod.metadata.uid))
      for (const pod of workers.list()) if (!uids.has(pod.metadata.uid) && !isStaticPod(pod)) alone(pod, () => workers.deleted(pod))
      statics.forgetMirrors()
      for (const pod of items) alone(pod, () => take(pod))
      if (!first) return
      first = false
      statics.read.then(onAllListed).catch((error: unknown) => context.log.warn('Removing what earlier pods left failed', { error: String(error) }))
    },
    changed: take,
    deleted: (pod: FrozenPod) => {
      if (!statics.mirrorSeen(pod, true)) workers.deleted(pod)
    },
  }
  const selection = { fieldSelector: `spec.nodeName=${context.config.nodeName}` }
  await Promise.all([listWatch(context.client.of(pods), selection, handler, context, signal), events.run(workers, signal)])
}

function resizeRoom({ allocatable, config, resources }: KubeletContext) {
  const { cpuPolicy, memoryPolicy } = resources()
  return { allocatable, cpuPolicy, memoryPolicy, podLevel: gateEnabled(config, 'InPlacePodLevelResourcesVerticalScaling') }
}

/** At most so many sandboxes and containers are created and started at once: more only make each slower. */
function limitStarts(runtime: RuntimeService, limit: number): RuntimeService {
  let active = 0
  const waiting: (() => void)[] = []
  const limited = async <T>(work: () => Promise<T>): Promise<T> => {
    if (active >= limit) await new Promise<void>((resolve) => waiting.push(resolve))
    active++
    try {
      return await work()
    } finally {
      active--
      waiting.shift()?.()
    }
  }
  return {
    ...runtime,
    runPodSandbox: (config, handler, context) => limited(() => runtime.runPodSandbox(config, handler, context)),
    createContainer: (sandboxId, config, sandbox, context) => limited(() => runtime.createContainer(sandboxId, config, sandbox, context)),
    startContainer: (id, context) => limited(() => runtime.startContainer(id, context)),
  }
}
