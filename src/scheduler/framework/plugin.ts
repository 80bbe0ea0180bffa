/**
 * What a scheduler plugin may implement (L3): only the extension points it needs. All are pure but bind.
 * Upstream: kube-scheduler/framework/interface.go (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { NodeInfo, PodInfo } from './nodeInfo.ts'
import type { FilterResult, Refusal } from './status.ts'

/** Every node as one scheduling cycle sees it. */
export interface Snapshot {
  readonly nodes: readonly NodeInfo[]
  get(name: string): NodeInfo | undefined
  /** On how many nodes an image is. */
  imageNodes(name: string): number
}

/** What a plugin worked out for this pod in an earlier step of the same cycle, by plugin name. */
export type CycleState = Map<string, unknown>

export interface PreFilterResult {
  /** Only these nodes can fit; absent: all may. */
  readonly nodeNames?: ReadonlySet<string>
}

/** A change of the cluster that may make a refused pod fit. */
export type ClusterEvent =
  | { readonly type: 'NodeAdd'; readonly node: Frozen<Node> }
  | { readonly type: 'NodeUpdate'; readonly node: Frozen<Node>; readonly old: Frozen<Node> }
  | { readonly type: 'PodDelete'; readonly pod: Frozen<Pod> }
  | { readonly type: 'PodUpdate'; readonly pod: Frozen<Pod>; readonly old: Frozen<Pod> }

export interface ScoredNode {
  readonly node: NodeInfo
  score: number
}

export const maxNodeScore = 100

export interface SchedulerPlugin {
  readonly name: string
  /** A refusal keeps the pod out of the queue until the pod itself changes. */
  preEnqueue?(pod: Frozen<Pod>): Refusal | undefined
  /** Negative when `a` comes before `b`. One plugin of a profile has it. */
  less?(a: { readonly pod: Frozen<Pod>; readonly sinceMs: number }, b: { readonly pod: Frozen<Pod>; readonly sinceMs: number }): number
  /** 'skip': this plugin's filter need not be asked for this pod. */
  preFilter?(state: CycleState, pod: PodInfo, snapshot: Snapshot): PreFilterResult | Refusal | 'skip' | undefined
  filter?(state: CycleState, pod: PodInfo, node: NodeInfo): FilterResult
  /** 'skip': no scores for this pod. */
  preScore?(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: Snapshot): 'skip' | undefined
  /** 0 … 100, or any range when normalize brings it there. */
  score?(state: CycleState, pod: PodInfo, node: NodeInfo, snapshot: Snapshot): number
  normalize?(scores: ScoredNode[]): void
  /** Whether a pod that this plugin refused may fit after the event; absent: events never help. */
  requeueOn?(event: ClusterEvent, pod: Frozen<Pod>): boolean
}

/** Scales to 0 … 100 by the highest; `reverse` makes the highest the worst. Upstream: plugins/helper DefaultNormalizeScore. */
export function normalizeByHighest(scores: ScoredNode[], reverse: boolean): void {
  const highest = Math.max(0, ...scores.map((one) => one.score))
  for (const one of scores) {
    const scaled = highest === 0 ? 0 : Math.floor((maxNodeScore * one.score) / highest)
    one.score = reverse ? maxNodeScore - scaled : scaled
  }
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'code' in value
}
