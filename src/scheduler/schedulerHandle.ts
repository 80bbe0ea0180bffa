/** What plugins of one profile get (L3): wires their wishes to the scheduler's parts. Upstream: framework/runtime/framework.go frameworkImpl. */
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { ReadableStore } from '#client/cache/indexer'
import type { Lister } from '#client/cache/lister'
import type { EventHandler, HandlerRegistration, SharedInformer } from '#client/cache/sharedInformer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client, Resource } from '#client/client'
import type { EventSeriesRecorder } from '#client/eventSeriesRecorder'
import type { Extenders } from './extenders/extenders.ts'
import type { CycleState } from './framework/cycleState.ts'
import type { Handle, PreemptionCandidate, WaitingPod } from './framework/handle.ts'
import type { NodeInfo } from './framework/nodeInfo.ts'
import type { PodInfo } from './framework/podInfo.ts'
import type { Profile } from './framework/profile.ts'
import type { PlacementIndex } from './framework/snapshot.ts'
import type { Answer, FilterResult } from './framework/status.ts'
import type { Nominator } from './nominator.ts'
import { type CycleTimer, FilterTally, filterNode, filtersOf } from './schedulePod.ts'
import type { SchedulerCache } from './schedulerCache.ts'
import type { WaitingPods } from './waitingPods.ts'

export interface HandleDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly events: EventSeriesRecorder
  readonly extenders: Extenders
  readonly cache: SchedulerCache
  readonly nominator: Nominator
  readonly waiting: WaitingPods
  readonly signal: AbortSignal
  readonly activate: (keys: Iterable<string>) => void
  /** Counts filters that preemption runs outside of a cycle's own extension points. */
  readonly timer?: ((profile: string) => CycleTimer) | undefined
  readonly background: (work: Promise<void>) => void
}

/** Informers that plugins asked for, and their handlers, to wait for and to take back. */
export class PluginWatches {
  readonly informers = new Set<SharedInformer<never>>()
  readonly registrations: HandlerRegistration[] = []
}

export class SchedulerHandle implements Handle {
  readonly #deps: HandleDeps
  readonly #watches: PluginWatches
  readonly #timer: CycleTimer | undefined
  readonly profileName: string
  /** Known once every plugin of it is made. */
  profile: Profile | undefined

  constructor(deps: HandleDeps, profileName: string, watches: PluginWatches) {
    this.#deps = deps
    this.#watches = watches
    this.profileName = profileName
    this.#timer = deps.timer?.(profileName)
  }

  get snapshot(): SchedulerCache {
    return this.#deps.cache
  }

  get client(): Client {
    return this.#deps.client
  }

  get clock(): Clock {
    return this.#deps.clock
  }

  get random(): Random {
    return this.#deps.random
  }

  get log(): Logger {
    return this.#deps.log
  }

  get metrics(): Metrics {
    return this.#deps.metrics
  }

  get events(): EventSeriesRecorder {
    return this.#deps.events
  }

  get signal(): AbortSignal {
    return this.#deps.signal
  }

  lister<T extends KubeObject>(resource: Resource<T>): Lister<T> {
    return this.#informer(resource).lister
  }

  watch<T extends KubeObject>(resource: Resource<T>, handler: EventHandler<T>): ReadableStore<T> {
    const informer = this.#informer(resource)
    this.#watches.registrations.push(informer.addHandler(handler))
    return informer.store
  }

  maintain(index: PlacementIndex): void {
    this.#deps.cache.maintain(index)
  }

  filterWithNominated(state: CycleState, pod: PodInfo, node: NodeInfo): FilterResult {
    const { nominator } = this.#deps
    const profile = this.#profile()
    const nominatedTo = nominator.isEmpty ? undefined : (name: string) => nominator.on(name)
    const filters = filtersOf(profile, state)
    const tally = this.#timer && new FilterTally(filters)
    const refused = filterNode({ filters, profile, state, pod, nominatedTo, tally }, node)
    tally?.tell(this.#timer)
    return refused?.refusal
  }

  addPod(state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo): Answer {
    for (const plugin of this.#profile().points.preFilter) {
      const refusal = state.skipFilter.has(plugin.name) ? undefined : plugin.addPod?.(state, pod, added, node)
      if (refusal) return refusal
    }
    return undefined
  }

  removePod(state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo): Answer {
    for (const plugin of this.#profile().points.preFilter) {
      const refusal = state.skipFilter.has(plugin.name) ? undefined : plugin.removePod?.(state, pod, removed, node)
      if (refusal) return refusal
    }
    return undefined
  }

  filterPreemption(pod: PodInfo, candidates: readonly PreemptionCandidate[]): Promise<readonly PreemptionCandidate[]> {
    return this.#deps.extenders.preempt(pod, candidates, this.#deps.cache)
  }

  nominatedTo(nodeName: string): readonly PodInfo[] {
    return this.#deps.nominator.on(nodeName)
  }

  waitingPods(): readonly WaitingPod[] {
    return this.#deps.waiting.list()
  }

  waitingPod(uid: string): WaitingPod | undefined {
    return this.#deps.waiting.get(uid)
  }

  activate(pods: readonly Frozen<Pod>[]): void {
    this.#deps.activate(pods.map(keyOf))
  }

  background(work: Promise<void>): void {
    this.#deps.background(work)
  }

  #profile(): Profile {
    if (!this.profile) throw new Error(`profile ${this.profileName} is not complete yet`)
    return this.profile
  }

  #informer<T extends KubeObject>(resource: Resource<T>): SharedInformer<T> {
    const informer = this.#deps.informers.of(resource)
    this.#watches.informers.add(informer as unknown as SharedInformer<never>)
    return informer
  }
}
