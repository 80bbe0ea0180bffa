/**
 * What a plugin gets of the scheduler (L3). Upstream: kube-scheduler/framework/interface.go Handle (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { ReadableStore } from '#client/cache/indexer'
import type { Lister } from '#client/cache/lister'
import type { EventHandler } from '#client/cache/sharedInformer'
import type { Client, Resource } from '#client/client'
import type { EventSeriesRecorder } from '#client/eventSeriesRecorder'
import type { CycleState } from './cycleState.ts'
import type { NodeInfo } from './nodeInfo.ts'
import type { PodInfo } from './podInfo.ts'
import type { PlacementIndex, Snapshot } from './snapshot.ts'
import type { Answer, FilterResult } from './status.ts'

/** A pod that Permit holds back. */
export interface WaitingPod {
  readonly pod: PodInfo
  /** Names of the plugins that have not allowed it yet. */
  readonly pendingPlugins: readonly string[]
  allow(pluginName: string): void
  reject(pluginName: string, message: string): void
}

/** A node that would be made free by taking pods away. */
export interface PreemptionCandidate {
  readonly nodeName: string
  /** Most important first. */
  readonly victims: readonly PodInfo[]
  /** How many of them break a disruption budget. */
  readonly budgetViolations: number
}

export interface Handle {
  readonly profileName: string
  readonly snapshot: Snapshot
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Reports in the name of the profile. */
  readonly events: EventSeriesRecorder

  /** Reads the cluster's objects of a kind: asked for when the plugin is made, so that only what plugins need is watched. */
  lister<T extends KubeObject>(resource: Resource<T>): Lister<T>
  /** Also passes changes to `handler`, as long as the scheduler runs. */
  watch<T extends KubeObject>(resource: Resource<T>, handler: EventHandler<T>): ReadableStore<T>
  /** Keeps an index in step with the placed and assumed pods; it first gets all current ones. */
  maintain(index: PlacementIndex): void

  /** The filters of the profile on one node, with the pods nominated there counted: both ways, as a cycle asks them. */
  filterWithNominated(state: CycleState, pod: PodInfo, node: NodeInfo): FilterResult
  addPod(state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo): Answer
  removePod(state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo): Answer
  /** Pods nominated to a node. */
  nominatedTo(nodeName: string): readonly PodInfo[]

  /** Candidates that the extenders accept, possibly with other victims. */
  filterPreemption(pod: PodInfo, candidates: readonly PreemptionCandidate[]): Promise<readonly PreemptionCandidate[]>

  waitingPods(): readonly WaitingPod[]
  waitingPod(uid: string): WaitingPod | undefined
  /** Puts pods that wait anywhere in the queue straight into the active one. */
  activate(pods: readonly Frozen<Pod>[]): void
  /** Work in the background that the scheduler waits for when it stops. */
  background(work: Promise<void>): void
  /** Aborts when the scheduler stops. */
  readonly signal: AbortSignal
}
