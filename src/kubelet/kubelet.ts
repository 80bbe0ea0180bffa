/**
 * Runs a kubelet (L3): parts.ts creates its parts, this file starts their loops, follows the node's pods and stops everything together.
 * Real and simulated nodes are this same kubelet over another RuntimeService. Upstream: kubelet/kubelet.go (v1.36).
 */
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { createWakeUp } from '#base/wakeUp'
import { type KubeletConfig, kubeletConfig } from './core/config.ts'
import { type FrozenPod, isStaticPod } from './core/containers.ts'
import type { KubeletContext, KubeletDeps } from './core/context.ts'
import type { KubeletView } from './core/kubeletView.ts'
import { isolated } from './core/listWatch.ts'
import { collectGarbage, type GarbageDeps, reclaimOf, removeOrphans } from './gc.ts'
import { runLogRotation } from './logs/logRotation.ts'
import { type NodeMemory, newNodeMemory } from './node/nodeManager.ts'
import { type NodeShutdown, shutdownPeriods } from './node/nodeShutdown.ts'
import { watchOom } from './node/oomWatcher.ts'
import { createParts, type KubeletParts } from './parts.ts'
import type { PodWorkers } from './pods/podWorkers.ts'
import { podResolver } from './pods/resolver.ts'
import type { StandBy } from './standBy.ts'
import { publishCsiNode } from './volumes/csi/csiNode.ts'

export interface Kubelet extends Component {
  readonly view: KubeletView
  /** Resolves once the Node is registered. */
  readonly registered: Promise<void>
  /** Creates the parts that a node without pods does not have. Resolves when they are there, or the kubelet has ended. */
  wake(): Promise<void>
}

interface Running extends KubeletParts {
  cleanupMs: number
}

type Settings = Partial<KubeletConfig> & Pick<KubeletConfig, 'nodeName'>

/**
 * Creates the kubelet of one node.
 * @param standBy does the work of a node without pods, until the whole kubelet is needed; absent: the whole kubelet runs from the start
 */
export function createKubelet(deps: KubeletDeps, settings: Settings, standBy?: StandBy): Kubelet {
  const config = kubeletConfig(settings)
  let running: Running | undefined
  let markRegistered = () => {}
  const registered = new Promise<void>((resolve) => {
    markRegistered = resolve
  })
  const needed = createWakeUp()
  let markAwake = () => {}
  const awake = new Promise<void>((resolve) => {
    markAwake = resolve
  })
  const list = () => running?.workers.list() ?? []
  return {
    name: 'kubelet',
    registered,
    wake: () => {
      needed.ring()
      return awake
    },
    view: {
      config,
      runtime: deps.runtime,
      pods: list,
      pod: (namespace, name) => list().find((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name),
      podWorkers: () => running?.workers.states() ?? [],
      podTrace: (object) => deps.trace?.events(new Set([object])) ?? [],
      podStatus: (uid) => running?.statuses.get(uid),
      context: () => running?.context,
      resolver: (pod) => podResolver(pod, config).config,
      volumeStatistics: async (podUid, measures) => (await running?.volumes.statistics(podUid, measures)) ?? [],
      probeMetrics: () => running?.probes.metricFamilies() ?? [],
      latestLoopEntryMs: () => running?.cleanupMs,
    },
    run: async (signal) => {
      // When one part fails, all others stop too.
      using stop = abortScope(signal)
      try {
        const memory = newNodeMemory()
        if (standBy) await standBy(deps, { config, memory, needed, onRegistered: markRegistered }, stop.signal)
        if (stop.signal.aborted) return
        const parts = await createParts(deps, config, memory, stop.signal)
        const started: Running = { ...parts, cleanupMs: deps.clock.now() }
        running = started
        markAwake()
        void parts.node.registered.then(markRegistered)
        const onCleanup = () => {
          started.cleanupMs = deps.clock.now()
        }
        await runKubelet(parts, memory, onCleanup, stop.signal)
      } finally {
        stop.abort()
        markAwake()
        await running?.workers.settled()
        await running?.certificatesDone()
      }
    },
  }
}

async function runKubelet(parts: KubeletParts, memory: NodeMemory, onCleanup: () => void, signal: AbortSignal): Promise<void> {
  const { context, services, workers, garbage, node, statics, eviction } = parts
  const { isRegistered } = memory
  await Promise.all([
    ...(context.isStandalone ? [] : [node.run(signal)]),
    ...(context.isStandalone || isRegistered ? [] : [publishCsiNode(context, node.registered, () => memory.createdUid, signal)]),
    context.resources.run(signal),
    parts.cgroups.run(signal),
    parts.allocations.run(signal),
    parts.csi.run(signal),
    parts.localPaths.run(signal),
    services.done,
    services.synced.then(() => (signal.aborted ? undefined : watchPods(parts, signal))),
    statics.run(workers, signal),
    collectGarbage(garbage, onCleanup, signal),
    runLogRotation(context, signal),
    eviction.run(workers, reclaimOf(garbage), signal),
    ...(context.host ? [watchOom(context, signal)] : []),
    ...followShutdown(context, parts.shutdown, workers, signal),
  ])
}

/** Ends pods before the machine goes down, if the node is configured to give them time. */
function followShutdown(context: KubeletContext, shutdown: NodeShutdown, workers: PodWorkers, signal: AbortSignal): Promise<void>[] {
  const periods = shutdownPeriods(context.config)
  if (periods.length === 0) return []
  const periodMs = periods.reduce((sum, { shutdownGracePeriodSeconds }) => sum + shutdownGracePeriodSeconds * 1000, 0)
  const listener = { shutDown: () => shutdown.shutDown(workers, signal), cancel: shutdown.cancel }
  // Loaded by the nodes that have such a period.
  const watching = import('./node/shutdownSignal.ts').then(({ watchForShutdown }) => watchForShutdown(context, listener, periodMs, signal))
  return [shutdown.restore(), watching]
}

const [firstRetryMs, mostRetryMs] = [1_000, 30_000]

/** Right after a crash of the machine or of the runtime, the runtime may not answer yet. */
async function removeEarlierPods(garbage: GarbageDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = garbage.context
  for (let retryMs = firstRetryMs; !signal.aborted; retryMs = Math.min(2 * retryMs, mostRetryMs)) {
    try {
      return await removeOrphans(garbage)
    } catch (error) {
      log.warn('Failed to remove what earlier pods left', { error: messageOf(error), retryMs })
      await clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}

/**
 * Follows the pods of this node. Containers without a pod are removed once every source has delivered its first list; before that, their pod may only not
 * be known yet.
 */
async function watchPods({ context, workers, statics, events, garbage, markSourcesReady }: KubeletParts, signal: AbortSignal): Promise<void> {
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
      void statics.read.then(() => {
        markSourcesReady()
        return removeEarlierPods(garbage, signal)
      })
    },
    changed: take,
    deleted: (pod: FrozenPod) => {
      if (!statics.mirrorSeen(pod, true)) workers.deleted(pod)
    },
  }
  await Promise.all([context.sources.pods(context.config.nodeName, handler, signal), events.run(workers, signal)])
}
