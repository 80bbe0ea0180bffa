/**
 * Plays Stages (testing): for nodes annotated kwok.x-k8s.io/node=fake, which have no kubelet, and for the pods bound to them, it waits as long as the
 * next Stage says and writes what it says. Keeps the nodes' Leases fresh. What is next is decided in lifecycle.ts.
 * Upstream: kwok pkg/kwok/controllers.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus, type StatusReason } from '#api/machinery/status'
import type { Clock, Timer } from '#base/clock'
import type { Logger } from '#base/log'
import type { Random } from '#base/random'
import { nodes, pods } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client, Resource } from '#client/client'
import { createEventRecorder, type EventRecorder } from '#client/eventRecorder'
import { PodAddresses } from './addresses.ts'
import { delayOf, type Effect, effectsOf, nextStage } from './lifecycle.ts'
import { NodeLeases } from './nodeLeases.ts'
import { type CompiledStage, clusterFunctionNames, compileStage, type Stage } from './stage.ts'
import { stages } from './stageDefinition.ts'
import { genericFunctions, type TemplateFunctions } from './templateFunctions.ts'

export const fakeNodeAnnotation = { key: 'kwok.x-k8s.io/node', value: 'fake' } as const

export interface StagePlayerDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly minWatchSeconds: number
}

/** All names that a Stage's templates may call. */
export const templateFunctionNames: ReadonlySet<string> = new Set([...Object.keys(genericFunctions(() => 0, 0)), ...clusterFunctionNames])

/** From a range for documentation, so that no host of a real network is contacted. */
const nodeAddress = '192.0.2.10'
const podCidrOtherwise = '10.0.0.0/24'
const firstRetryMs = 1_000
const lastRetryMs = 60_000

/** Until aborted. The kind Stage has to be there. */
export async function playStages(deps: StagePlayerDeps, signal: AbortSignal): Promise<void> {
  const informers = createSharedInformerFactory(deps.client, deps)
  const player = new StagePlayer(deps, signal, {
    stages: informers.of(stages),
    nodes: informers.of(nodes),
    pods: informers.of(pods),
  })
  const running = informers.run(signal)
  await informers.synced(signal).catch(() => {})
  if (!signal.aborted) player.start()
  await running
  player.stop()
}

interface Informers {
  readonly stages: SharedInformer<Stage>
  readonly nodes: SharedInformer<Node>
  readonly pods: SharedInformer<Pod>
}

interface Planned {
  readonly resourceVersion: string
  readonly timer: Timer
}

class StagePlayer {
  readonly #deps: StagePlayerDeps
  readonly #signal: AbortSignal
  readonly #informers: Informers
  readonly #events: EventRecorder
  readonly #addresses = new PodAddresses()
  readonly #generic: TemplateFunctions
  readonly #planned = new Map<string, Planned>()
  readonly #leases: NodeLeases
  #stages: Readonly<Record<CompiledStage['kind'], readonly CompiledStage[]>> = { Pod: [], Node: [] }

  constructor(deps: StagePlayerDeps, signal: AbortSignal, informers: Informers) {
    this.#deps = deps
    this.#signal = signal
    this.#informers = informers
    this.#events = createEventRecorder(deps, { component: 'kwok-controller' }, signal)
    this.#leases = new NodeLeases(deps.client, deps.clock, signal)
    this.#generic = genericFunctions(() => deps.clock.now(), deps.clock.now())
  }

  start(): void {
    const { stages, nodes, pods } = this.#informers
    const stagesChanged = () => this.#readStages()
    stages.addHandler({ onAdd: stagesChanged, onUpdate: stagesChanged, onDelete: stagesChanged })
    nodes.addHandler({
      onAdd: (node) => this.#nodeChanged(node),
      onUpdate: (_, node) => this.#nodeChanged(node),
      onDelete: (node) => this.#nodeGone(node),
    })
    pods.addHandler({
      onAdd: (pod) => this.#podChanged(pod),
      onUpdate: (_, pod) => this.#podChanged(pod),
      onDelete: (pod) => this.#forget('Pod', pod),
    })
  }

  stop(): void {
    for (const { timer } of this.#planned.values()) timer.cancel()
    this.#leases.stop()
  }

  #readStages(): void {
    const compiled = this.#informers.stages.store.list().flatMap((stage) => {
      try {
        return [compileStage(stage as Stage, templateFunctionNames)]
      } catch (error) {
        this.#events.event(stage, 'Warning', 'NotSupported', String(error))
        this.#deps.log.warn('A Stage is not played', { error: String(error) })
        return []
      }
    })
    // In the order of their names, so that a draw does not depend on who came first.
    compiled.sort((a, b) => (a.name < b.name ? -1 : 1))
    this.#stages = { Pod: compiled.filter(({ kind }) => kind === 'Pod'), Node: compiled.filter(({ kind }) => kind === 'Node') }
    for (const { timer } of this.#planned.values()) timer.cancel()
    this.#planned.clear()
    for (const node of this.#informers.nodes.store.list()) this.#nodeChanged(node)
    for (const pod of this.#informers.pods.store.list()) this.#podChanged(pod)
  }

  #isFake(nodeName: string | undefined): boolean {
    const node = nodeName === undefined ? undefined : this.#informers.nodes.lister.get({ name: nodeName })
    return node?.metadata.annotations?.[fakeNodeAnnotation.key] === fakeNodeAnnotation.value
  }

  #nodeChanged(node: Frozen<Node>): void {
    const { name = '' } = node.metadata
    if (!this.#isFake(name)) return
    this.#plan('Node', node)
    if (!this.#leases.keep(name)) return
    for (const pod of this.#informers.pods.store.list()) if (pod.spec.nodeName === name) this.#podChanged(pod)
  }

  #nodeGone(node: Frozen<Node>): void {
    const { name = '' } = node.metadata
    this.#leases.letGo(name)
    this.#forget('Node', node)
  }

  #podChanged(pod: Frozen<Pod>): void {
    if (!this.#isFake(pod.spec.nodeName)) return
    const { uid = '' } = pod.metadata
    if (pod.status?.podIP && !pod.spec.hostNetwork) this.#addresses.keep(uid, this.#podCidr(pod.spec.nodeName), pod.status.podIP)
    this.#plan('Pod', pod)
  }

  #forget(kind: CompiledStage['kind'], object: Frozen<KubeObject>): void {
    const key = `${kind}/${keyOf(object)}`
    this.#planned.get(key)?.timer.cancel()
    this.#planned.delete(key)
    if (kind === 'Pod') this.#addresses.release(object.metadata.uid ?? '')
  }

  /** Replaces the plan that was made for an older state of the object. */
  #plan(kind: CompiledStage['kind'], object: Frozen<Pod> | Frozen<Node>): void {
    const { clock, random, log } = this.#deps
    const key = `${kind}/${keyOf(object)}`
    const { resourceVersion = '' } = object.metadata
    const planned = this.#planned.get(key)
    if (planned?.resourceVersion === resourceVersion) return
    planned?.timer.cancel()
    this.#planned.delete(key)
    try {
      const stage = nextStage(this.#stages[kind], object as KubeObject, random)
      if (!stage) return
      this.#playLater(key, stage, object, delayOf(stage, object as KubeObject, clock.now(), random), { step: 0, retryMs: firstRetryMs })
    } catch (error) {
      log.warn('No Stage could be chosen', { object: key, error: String(error) })
    }
  }

  #playLater(key: string, stage: CompiledStage, object: Frozen<Pod> | Frozen<Node>, delayMs: number, at: { step: number; retryMs: number }): void {
    const { resourceVersion = '' } = object.metadata
    const planned: Planned = {
      resourceVersion,
      timer: this.#deps.clock.timer(delayMs, () => void this.#play(key, planned, stage, object, at)),
    }
    this.#planned.set(key, planned)
  }

  async #play(key: string, planned: Planned, stage: CompiledStage, object: Frozen<Pod> | Frozen<Node>, at: { step: number; retryMs: number }): Promise<void> {
    let { step } = at
    try {
      for (; step < stage.steps.length; step++) {
        const effects = effectsOf(stage.steps[step]!, object as KubeObject, this.#functionsFor(stage.kind, object))
        for (const effect of effects) await this.#carryOut(stage.kind, object, effect)
      }
      if (this.#planned.get(key) === planned) this.#planned.delete(key)
    } catch (error) {
      if (this.#signal.aborted || isStatus(error, 'NotFound') || this.#planned.get(key) !== planned) return
      if (!isWorthRetrying(error)) {
        this.#deps.log.warn('A Stage could not be played', { stage: stage.name, object: key, error: String(error) })
        return
      }
      this.#playLater(key, stage, object, at.retryMs, { step, retryMs: Math.min(lastRetryMs, at.retryMs * 2) })
    }
  }

  async #carryOut(kind: CompiledStage['kind'], object: Frozen<Pod> | Frozen<Node>, effect: Effect): Promise<void> {
    if (effect.type === 'event') {
      const { type = 'Normal', reason = '', message = '' } = effect.event
      this.#events.event(object, type === 'Warning' ? 'Warning' : 'Normal', reason, message)
      return
    }
    const client = this.#deps.client.of<KubeObject>(kind === 'Pod' ? (pods as Resource<KubeObject>) : (nodes as Resource<KubeObject>))
    const { namespace, name = '', uid } = object.metadata
    const ref = namespace === undefined ? { name } : { namespace, name }
    const options = { signal: this.#signal }
    if (effect.type === 'delete') await client.delete(ref, { ...options, gracePeriodSeconds: 0, preconditions: { uid } })
    else await client.patch(ref, effect.patchType, effect.body, { ...options, subresource: effect.subresource, fieldManager: 'kwok' })
  }

  #functionsFor(kind: CompiledStage['kind'], object: Frozen<Pod> | Frozen<Node>): TemplateFunctions {
    const { name = '', uid = '' } = object.metadata
    const nodeName = kind === 'Node' ? name : (object as Frozen<Pod>).spec.nodeName
    const nodeIP = (of: unknown) => this.#nodeAddress(String(of))
    const podIP = (of: unknown, hostNetwork: unknown, podUid: unknown) =>
      hostNetwork === true ? nodeIP(of) : (this.#addresses.of(String(podUid || uid), this.#podCidr(String(of))) ?? '')
    return {
      ...this.#generic,
      NodeName: () => nodeName,
      // Nothing listens there.
      NodePort: () => 0,
      NodeIP: () => nodeAddress,
      NodeIPWith: nodeIP,
      NodeIPsWith: (of) => [nodeIP(of)],
      PodIP: () => podIP(nodeName, false, uid),
      PodIPWith: podIP,
      PodIPsWith: (...args) => [podIP(args[0], args[1], args[2])],
    }
  }

  #nodeAddress(nodeName: string): string {
    const addresses = this.#informers.nodes.lister.get({ name: nodeName })?.status?.addresses ?? []
    return addresses.find(({ type }) => type === 'InternalIP')?.address ?? nodeAddress
  }

  #podCidr(nodeName: string | undefined): string {
    return this.#informers.nodes.lister.get({ name: nodeName ?? '' })?.spec?.podCIDR || podCidrOtherwise
  }
}

/** Neither the API's refusal for good nor a fault of a template. */
function isWorthRetrying(error: unknown): boolean {
  if (isStatus(error))
    return ['TooManyRequests', 'ServiceUnavailable', 'InternalError', 'Timeout', 'ServerTimeout'].some((reason) => isStatus(error, reason as StatusReason))
  return error instanceof Error && 'code' in error
}
