/**
 * What a scheduler plugin may implement (L3): only the extension points it needs. PreEnqueue to Reserve are pure and at once; what writes to the
 * API is PreBind, Bind and, in the background, PostFilter. A plugin's failure is thrown; an expected "no" is a Refusal.
 * Upstream: kube-scheduler/framework/interface.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Requeue } from './clusterEvent.ts'
import type { CycleState } from './cycleState.ts'
import type { Handle } from './handle.ts'
import type { NodeInfo } from './nodeInfo.ts'
import type { NodeRefusals } from './nodeRefusals.ts'
import type { ArgsOf } from './pluginArgs.ts'
import type { PodInfo } from './podInfo.ts'
import type { Snapshot } from './snapshot.ts'
import type { Answer, FilterResult, Refusal } from './status.ts'

export interface PreFilterResult {
  /** Only these nodes can fit; absent: all may. */
  readonly nodeNames?: ReadonlySet<string> | undefined
}

export interface PostFilterResult {
  /** The node that is being made free; '' takes an earlier nomination back; absent leaves it as it is. */
  readonly nominatedNodeName?: string | undefined
  /** Absent: the pod will fit there. */
  readonly refusal?: Refusal | undefined
}

/** A pod as the queue keeps it. */
export interface QueuedPodInfo {
  readonly pod: Frozen<Pod>
  /** When it (last) became active, in ms. */
  readonly sinceMs: number
}

export const maxNodeScore = 100

type MaybePromise<T> = T | Promise<T>

export interface SchedulerPlugin {
  readonly name: string
  /** The events after which a pod that this plugin refused may fit. Absent: after every event. */
  readonly requeueOn?: readonly Requeue[] | undefined
  /**
   * All inputs of filter and score except the node itself, as text: pods with the same text get the same answers from a node until it changes, so the
   * scheduler need not ask again. Undefined, or no such method: they look at more than that. Upstream: SignPlugin.
   */
  sign?(pod: PodInfo): string | undefined
  /**
   * All inputs of preFilter, filter and score except the cluster itself, as text: pods with the same text get the same answers as long as nothing
   * changes, so the scheduler may reuse a ranking of nodes. Undefined: the pod is like no other. Absent: as `sign`. Upstream: SignPlugin.
   */
  batchSign?(pod: PodInfo): string | undefined
  /** A refusal keeps the pod out of the queue until one of the plugin's events. */
  preEnqueue?(pod: Frozen<Pod>): Refusal | undefined
  /** Negative when `a` is scheduled before `b`. Exactly one plugin of a profile has it, the same in all profiles. */
  less?(a: QueuedPodInfo, b: QueuedPodInfo): number
  /** 'skip': this plugin's filter need not be asked for this pod. */
  preFilter?(state: CycleState, pod: PodInfo, snapshot: Snapshot): PreFilterResult | Refusal | 'skip' | undefined
  /** Changes what preFilter has written, as if `added` ran (or no longer ran) on the node: preemption tries, nominated pods count. */
  addPod?(state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo): Answer
  removePod?(state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo): Answer
  filter?(state: CycleState, pod: PodInfo, node: NodeInfo): FilterResult
  /** Asked when no node fits: what could be done about it. */
  postFilter?(state: CycleState, pod: PodInfo, refusals: NodeRefusals): MaybePromise<PostFilterResult>
  /** 'skip': no scores for this pod. */
  preScore?(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: Snapshot): 'skip' | undefined
  /** 0 … 100, or any range when normalize brings it there. */
  score?(state: CycleState, pod: PodInfo, node: NodeInfo, snapshot: Snapshot): number
  /** Changes the scores in place; `scores[i]` belongs to `nodes[i]`. */
  normalize?(scores: number[], state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[]): void
  reserve?(state: CycleState, pod: PodInfo, nodeName: string): Answer
  /** Undoes reserve; also called when reserve was not reached or refused. Must not throw. */
  unreserve?(state: CycleState, pod: PodInfo, nodeName: string): void
  /** `waitMs`: the pod waits, at most so long, until the plugin allows or rejects it (Handle.waitingPods). */
  permit?(state: CycleState, pod: PodInfo, nodeName: string): Answer | { readonly waitMs: number }
  /** 'skip': preBind has nothing to do for this pod. */
  preBindPreFlight?(state: CycleState, pod: PodInfo, nodeName: string): 'skip' | undefined
  preBind?(state: CycleState, pod: PodInfo, nodeName: string, signal: AbortSignal): Promise<Answer>
  /** 'skip': another plugin binds this pod. */
  bind?(state: CycleState, pod: PodInfo, nodeName: string, signal: AbortSignal): Promise<Answer | 'skip'>
  postBind?(state: CycleState, pod: PodInfo, nodeName: string): void
}

/** How a plugin is made: once per profile and run. */
export interface PluginDefinition {
  readonly name: string
  create(args: unknown, handle: Handle): SchedulerPlugin
}

/** `definePlugin('NodeAffinity', (args, handle) => ({ filter: … }))`: the arguments have the type that belongs to the name. */
export function definePlugin<Name extends string>(name: Name, create: (args: ArgsOf<Name>, handle: Handle) => Omit<SchedulerPlugin, 'name'>): PluginDefinition {
  return { name, create: (args, handle) => Object.assign(create(args as ArgsOf<Name>, handle), { name }) }
}

/** Scales to 0 … 100 by the highest; `reverse` makes the highest the worst. Upstream: plugins/helper DefaultNormalizeScore. */
export function normalizeByHighest(scores: number[], reverse: boolean): void {
  let highest = 0
  for (const score of scores) if (score > highest) highest = score
  for (let i = 0; i < scores.length; i++) {
    const scaled = highest === 0 ? 0 : Math.floor((maxNodeScore * (scores[i] as number)) / highest)
    scores[i] = reverse ? maxNodeScore - scaled : scaled
  }
}
