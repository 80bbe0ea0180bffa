/**
 * The scheduler (L3): watches the cluster, finds a node for each pod that has none, and binds it through the API. Cycles run one at a time on
 * the cache; bindings run in parallel. Upstream: pkg/scheduler (v1.36).
 */

import { setImmediate } from 'node:timers/promises'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { SpanOptions, Tracer } from '#base/traceContext'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { EventSeriesRecorder } from '#client/eventSeriesRecorder'
import type { ObjectTrace } from '#trace/objectTrace'
import { BindingCycle } from './bindingCycle.ts'
import { watchCluster } from './clusterWatch.ts'
import { createDecisionLog, type DecisionLog } from './decisions.ts'
import type { Explainer } from './explain/explainer.ts'
import type { Extender } from './extenders/extender.ts'
import { Extenders } from './extenders/extenders.ts'
import type { PluginDefinition } from './framework/plugin.ts'
import { createProfile, type Profile, type ProfileConfig } from './framework/profile.ts'
import { Nominator } from './nominator.ts'
import { defaultPlugins } from './plugins/index.ts'
import { PodReports } from './podReports.ts'
import { SchedulerCache } from './schedulerCache.ts'
import { PluginWatches, SchedulerHandle } from './schedulerHandle.ts'
import { createSchedulerMetrics, type SchedulerMetrics } from './schedulerMetrics.ts'
import { SchedulingCycle } from './schedulingCycle.ts'
import { SchedulingQueue } from './schedulingQueue.ts'
import { WaitingPods } from './waitingPods.ts'

export interface SchedulerDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined
  /** The recorder of one profile: its name is who reports. */
  readonly events: (profile: string) => EventSeriesRecorder
  /** Keeps decisions for explanations. Absent: none are kept. */
  readonly decisions?: DecisionLog | undefined
  /** Notes attempts for pods that a reader follows. Absent: nothing is noted. */
  readonly trace?: ObjectTrace | undefined
  /** Explains placements as long as the scheduler runs. Absent: no explanations. */
  readonly explainer?: Explainer | undefined
}

export interface SchedulerConfig {
  /** At least one; they share one queue. */
  readonly profiles: readonly ProfileConfig[]
  readonly podInitialBackoffMs: number
  readonly podMaxBackoffMs: number
  /** 0: adaptive. */
  readonly percentageOfNodesToScore: number
  /** Plugins in addition to Skiff's own, which profiles may enable. */
  readonly otherPlugins: readonly PluginDefinition[]
  readonly extenders: readonly Extender[]
}

export const defaultSchedulerConfig: SchedulerConfig = {
  profiles: [{ schedulerName: 'default-scheduler', plugins: {}, args: {} }],
  podInitialBackoffMs: 1000,
  podMaxBackoffMs: 10_000,
  percentageOfNodesToScore: 0,
  otherPlugins: [],
  extenders: [],
}

/** A pod's cycle may be long; the next one waits then until others had their turn. */
const longestTurnMs = 20
/** Cycles between two looks at the network, so that watches are not starved. */
const cyclesPerTurn = 32
const maxBindingsInFlight = 128

export function createScheduler(deps: SchedulerDeps, config: SchedulerConfig = defaultSchedulerConfig): Component {
  const metrics = createSchedulerMetrics(deps.metrics, () => deps.clock.monotonicMs())
  const decisions = deps.decisions ?? createDecisionLog()
  // Each run begins with an empty memory, which the informers fill: nothing half-done is left over from the one before.
  return { name: 'kube-scheduler', run: (signal) => runScheduler({ ...deps, decisions }, config, metrics, signal) }
}

async function runScheduler(
  deps: SchedulerDeps & { readonly decisions: DecisionLog },
  config: SchedulerConfig,
  metrics: SchedulerMetrics,
  signal: AbortSignal,
): Promise<void> {
  const work = new Set<Promise<void>>()
  const track = (one: Promise<void>) => {
    const tracked: Promise<void> = one
      .catch((error: unknown) => deps.log.error(error, 'Background work of the scheduler failed'))
      .finally(() => work.delete(tracked))
    work.add(tracked)
  }
  const cache = new SchedulerCache()
  const nominator = new Nominator()
  const waiting = new WaitingPods(deps.clock)
  const watches = new PluginWatches()
  const extenders = new Extenders(config.extenders, deps.log, signal)
  const activate = (keys: Iterable<string>) => queue.activate(keys)
  const profiles = new Map<string, Profile>()
  const recorders = new Map(config.profiles.map(({ schedulerName }) => [schedulerName, deps.events(schedulerName)]))
  for (const profile of config.profiles) {
    const events = recorders.get(profile.schedulerName) as EventSeriesRecorder
    const handle = new SchedulerHandle(
      { ...deps, events, extenders, cache, nominator, waiting, signal, activate, background: track, timer: metrics.timer },
      profile.schedulerName,
      watches,
    )
    handle.profile = createProfile(profile, defaultPlugins, config.otherPlugins, handle)
    profiles.set(profile.schedulerName, handle.profile)
  }
  const queue = new SchedulingQueue({
    clock: deps.clock,
    profiles,
    initialBackoffMs: config.podInitialBackoffMs,
    maxBackoffMs: config.podMaxBackoffMs,
    onIncoming: (place, event) => {
      metrics.incoming(place, event)
      metrics.pending(queue.counts())
    },
    onWaiting: metrics.unschedulable,
    onKept: metrics.kept,
    hintTimer: { nowMs: () => deps.clock.monotonicMs(), took: metrics.hint },
  })
  const showSizes = () => {
    metrics.pending(queue.counts())
    metrics.cacheSize(cache.nodeCount, cache.podCount, cache.assumedCount)
  }
  const reports = new PodReports({ ...deps, recorders })
  const shared = { ...deps, extenders, cache, queue, nominator, waiting, reports, schedulerMetrics: metrics, profiles, signal, track }
  const binding = new BindingCycle(shared)
  const cycle = new SchedulingCycle({ ...shared, binding, percentageOfNodesToScore: config.percentageOfNodesToScore })
  const cluster = watchCluster({
    ...deps,
    cache,
    queue,
    nominator,
    waiting,
    profiles,
    handled: (event, seconds) => {
      metrics.handled(event, seconds)
      showSizes()
    },
    onPodGone: (pod) => deps.decisions.forget(pod.metadata.uid ?? ''),
  })
  const detach = deps.explainer?.attach({ cache, queue, nominator, profiles, decisions: deps.decisions })
  try {
    await Promise.all([...watches.informers].map((informer) => informer.synced(signal)))
    await cluster.synced(signal)
    let turnStartedMs = deps.clock.monotonicMs()
    for (let cycles = 1; ; cycles++) {
      // A promise only where there is nothing to do.
      const queued = queue.tryPop() ?? (await queue.pop(signal))
      if (!queued || signal.aborted) return
      const run = () => cycle.run(queued)
      const asked = deps.tracer ? deps.tracer.span(spanOf(deps.tracer, queued.pod), run) : run()
      if (asked) await asked
      showSizes()
      if (cycles % cyclesPerTurn === 0 || deps.clock.monotonicMs() - turnStartedMs > longestTurnMs) {
        await setImmediate()
        turnStartedMs = deps.clock.monotonicMs()
      }
      if (!binding.hasRoom(maxBindingsInFlight)) await binding.room(maxBindingsInFlight)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    detach?.()
    cluster.remove()
    for (const registration of watches.registrations) registration.remove()
    queue.close()
    while (work.size > 0) await Promise.all(work)
  }
}

/** A decision that a traced write asked for. */
function spanOf(tracer: Tracer, pod: Frozen<Pod>): SpanOptions {
  const { namespace = '', name = '' } = pod.metadata
  return { name: 'Schedule', service: 'kube-scheduler', parent: tracer.followedTraceOf(pod), attributes: { pod: `${namespace}/${name}` } }
}
