/** A scheduler extender (L3): an external server that takes part in decisions. Upstream: pkg/scheduler/framework/extender.go (v1.36). */
import type { PreemptionCandidate } from '../framework/handle.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import type { Snapshot } from '../framework/snapshot.ts'

export interface ExtenderFilterAnswer {
  readonly feasible: readonly NodeInfo[]
  /** Node → why not, where preemption might help, and where it cannot. */
  readonly failed: ReadonlyMap<string, string>
  readonly unresolvable: ReadonlyMap<string, string>
}

export interface Extender {
  readonly name: string
  /** Its failure counts as consent. */
  readonly isIgnorable: boolean
  readonly weight: number
  isInterested(pod: PodInfo): boolean
  filter?(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal): Promise<ExtenderFilterAnswer>
  /** Node → 0 … 10. */
  prioritize?(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal): Promise<ReadonlyMap<string, number>>
  preempt?(pod: PodInfo, candidates: readonly PreemptionCandidate[], snapshot: Snapshot, signal: AbortSignal): Promise<readonly PreemptionCandidate[]>
  bind?(pod: PodInfo, nodeName: string, signal: AbortSignal): Promise<void>
}
