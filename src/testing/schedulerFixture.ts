/**
 * A cluster in memory for tests of scheduler plugins: the real cache, profile and cycle, with objects that listers read from what the test hands in.
 * Nothing talks to an API; what a plugin writes needs a client of the test's own.
 */
import type { Container, Node, Pod, PodSpec } from '#api/gen/types/core.v1'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { Indexer } from '#client/cache/indexer'
import { createLister } from '#client/cache/lister'
import type { EventHandler } from '#client/cache/sharedInformer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client, Resource } from '#client/client'
import type { EventSeriesRecorder } from '#client/eventSeriesRecorder'
import { Extenders } from '#scheduler/extenders/extenders'
import type { PluginDefinition } from '#scheduler/framework/plugin'
import { podInfo } from '#scheduler/framework/podInfo'
import { createProfile, type Profile, type ProfileConfig } from '#scheduler/framework/profile'
import { fitMessage } from '#scheduler/framework/status'
import { AnswerMemory } from '#scheduler/nodeAnswers'
import { Nominator } from '#scheduler/nominator'
import { defaultPlugins } from '#scheduler/plugins/index'
import { type ScheduleResult, schedulePod } from '#scheduler/schedulePod'
import { SchedulerCache } from '#scheduler/schedulerCache'
import { PluginWatches, SchedulerHandle } from '#scheduler/schedulerHandle'
import { WaitingPods } from '#scheduler/waitingPods'

export interface SchedulerFixture {
  readonly cache: SchedulerCache
  readonly nominator: Nominator
  readonly clock: VirtualClock
  readonly handle: SchedulerHandle
  readonly profile: Profile
  /** Adds or replaces an object of a kind that plugins list or watch. */
  put<T extends KubeObject>(resource: Resource<T>, ...objects: T[]): void
  /** One decision, without assuming it. */
  schedule(pod: Pod): ScheduleResult
  /** The node's name, or the message of the refusal. */
  decide(pod: Pod): { readonly on: string } | { readonly message: string }
}

export interface SchedulerFixtureOptions {
  readonly nodes?: readonly Node[]
  /** Pods that run already: those with a node. */
  readonly placed?: readonly Pod[]
  /** By resource; what is not named is empty. */
  readonly objects?: readonly (readonly [Resource<KubeObject>, readonly KubeObject[]])[]
  readonly profile?: Partial<ProfileConfig>
  readonly otherPlugins?: readonly PluginDefinition[]
  readonly client?: Client
  /** Whether decisions use what plugins said about nodes before, as the scheduler's do. On by default. */
  readonly remembers?: boolean
}

export function schedulerFixture(options: SchedulerFixtureOptions = {}): SchedulerFixture {
  const { nodes = [], placed = [], objects = [], profile: config = {}, otherPlugins = [], client = noClient, remembers = true } = options
  const cache = new SchedulerCache()
  const nominator = new Nominator()
  const clock = new VirtualClock()
  const random = seededRandom(1)
  const stores = new Stores()
  const extenders = new Extenders([], noLog, new AbortController().signal)
  const base = {
    client,
    informers: stores.factory(),
    clock,
    random,
    log: noLog,
    events: noEvents,
    cache,
    nominator,
    waiting: new WaitingPods(clock),
    metrics: noMetrics,
    extenders,
  }
  const inert = { signal: new AbortController().signal, activate: () => {}, background: () => {} }
  for (const [resource, list] of objects) stores.put(resource, ...list)
  for (const node of nodes) cache.setNode(node)
  for (const pod of placed) cache.setPod(pod)
  const handle = new SchedulerHandle({ ...base, ...inert }, 'default-scheduler', new PluginWatches())
  const profile = createProfile({ schedulerName: 'default-scheduler', plugins: {}, args: {}, ...config }, defaultPlugins, otherPlugins, handle)
  handle.profile = profile
  const answers = remembers ? new AnswerMemory() : undefined
  let startIndex = 0
  const schedule = (pod: Pod): ScheduleResult => {
    const nominatedTo = nominator.isEmpty ? undefined : (name: string) => nominator.on(name)
    const result = schedulePod(profile, podInfo(pod), cache, { random, startIndex, percentageOfNodesToScore: 0, nominatedTo, answers })
    if (result instanceof Promise) throw new Error('without extenders a decision is taken in one go')
    const { evaluatedNodes } = 'placed' in result ? result.placed : result.refused
    startIndex = (startIndex + evaluatedNodes) % Math.max(1, cache.nodes.length)
    return result
  }
  return {
    ...{ cache, nominator, clock, handle, profile, schedule },
    put: (resource, ...list) => stores.put(resource, ...list),
    decide: (pod) => {
      const result = schedule(pod)
      if ('placed' in result) return { on: result.placed.node.name }
      const { refusals, preFilterMessage } = result.refused
      const totalNodes = cache.nodes.length
      return { message: fitMessage({ totalNodes, refusals: refusals.forMessage(totalNodes), preFilterMessage }) }
    },
  }
}

/** The objects of each kind, and the handlers of their changes. */
class Stores {
  readonly #stores = new Map<string, { readonly store: Indexer<KubeObject>; readonly handlers: EventHandler<KubeObject>[] }>()

  put<T extends KubeObject>(resource: Resource<T>, ...objects: readonly T[]): void {
    const { store, handlers } = this.#of(resource)
    for (const object of objects as unknown as readonly Frozen<KubeObject>[]) {
      const old = store.set(object)
      for (const handler of handlers) {
        if (old) handler.onUpdate?.(old, object)
        else handler.onAdd?.(object, false)
      }
    }
  }

  factory(): SharedInformerFactory {
    const of = (resource: Resource<KubeObject>) => {
      const { store, handlers } = this.#of(resource)
      const addHandler = (handler: EventHandler<KubeObject>) => {
        handlers.push(handler)
        for (const object of store.list()) handler.onAdd?.(object, true)
        return { hasSynced: () => true, remove: () => {} }
      }
      return { resource, store, lister: createLister(store), addHandler }
    }
    return { of } as unknown as SharedInformerFactory
  }

  #of(resource: GroupResource) {
    const key = `${resource.group}/${resource.resource}`
    let there = this.#stores.get(key)
    if (!there) {
      there = { store: new Indexer<KubeObject>(), handlers: [] }
      this.#stores.set(key, there)
    }
    return there
  }
}

const noEvents: EventSeriesRecorder = { event: () => {}, flush: () => Promise.resolve() }

const noClient: Client = new Proxy({} as Client, {
  get: () => {
    throw new Error('this fixture has no client')
  },
})

export interface NodeShape {
  readonly name: string
  readonly cpu?: string
  readonly memory?: string
  readonly pods?: string
  readonly labels?: Record<string, string>
  readonly spec?: Node['spec']
  readonly status?: Partial<Node['status']>
}

/** A node with 4 CPUs, 8 GiB and room for 110 pods by default. */
export function nodeOf({ name, cpu = '4', memory = '8Gi', pods = '110', labels, spec = {}, status }: NodeShape): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    spec,
    status: { allocatable: { cpu, memory, pods }, ...status },
  }
}

/** A pod with one container that asks for `requests`. */
export function podOf(name: string, spec: Partial<PodSpec> = {}, requests: Record<string, string> = {}, labels: Record<string, string> = {}): Pod {
  const container: Container = { name: 'c', image: 'app:1', resources: { requests } }
  const metadata = { name, namespace: 'default', uid: name, labels, generation: 1 }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [container], ...spec }, status: {} }
}
