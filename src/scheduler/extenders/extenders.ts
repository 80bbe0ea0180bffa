/**
 * All extenders together (L3): selects the extenders that are interested in a pod and calls them in order.
 * Upstream: pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes; framework/preemption callExtenders (v1.36).
 */
import type { Logger } from '#base/log'
import type { PreemptionCandidate } from '../framework/handle.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { NodeRefusals } from '../framework/nodeRefusals.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import type { Snapshot } from '../framework/snapshot.ts'
import { unresolvable, unschedulable } from '../framework/status.ts'
import { extendersName } from '../queueingHints.ts'
import type { CycleExtenders } from '../schedulePod.ts'
import type { Extender } from './extender.ts'

/** An extender's 10 counts as a plugin's 100. */
const scoreFactor = 10

export class Extenders {
  readonly #extenders: readonly Extender[]
  readonly #log: Logger
  readonly #signal: AbortSignal

  constructor(extenders: readonly Extender[], log: Logger, signal: AbortSignal) {
    this.#extenders = extenders
    this.#log = log
    this.#signal = signal
  }

  get isEmpty(): boolean {
    return this.#extenders.length === 0
  }

  /** Undefined when no extender takes part in the choice of the pod's node. */
  forPod(pod: PodInfo): CycleExtenders | undefined {
    const interested = this.#extenders.filter((extender) => (extender.filter || extender.prioritize) && extender.isInterested(pod))
    if (interested.length === 0) return undefined
    return {
      filter: (_pod, nodes, refusals) => this.#filter(interested, pod, nodes, refusals),
      prioritize: (_pod, nodes) => this.#prioritize(interested, pod, nodes),
    }
  }

  /** The one that binds the pod, instead of the profile's plugins. */
  binderOf(pod: PodInfo): Extender | undefined {
    return this.#extenders.find((extender) => extender.bind && extender.isInterested(pod))
  }

  async #filter(extenders: readonly Extender[], pod: PodInfo, nodes: readonly NodeInfo[], refusals: NodeRefusals): Promise<readonly NodeInfo[]> {
    let feasible = nodes
    for (const extender of extenders) {
      if (feasible.length === 0) break
      if (!extender.filter) continue
      try {
        const answer = await extender.filter(pod, feasible, this.#signal)
        for (const [node, reason] of answer.failed)
          if (!answer.unresolvable.has(node)) refusals.add(node, { refusal: unschedulable(reason), plugin: extendersName })
        for (const [node, reason] of answer.unresolvable) refusals.add(node, { refusal: unresolvable(reason), plugin: extendersName })
        feasible = answer.feasible
      } catch (error) {
        if (!extender.isIgnorable) throw error
        this.#log.info('Skipped an extender that failed and may be ignored', { extender: extender.name, error: String(error) })
      }
    }
    return feasible
  }

  /** A failure means no opinion. */
  async #prioritize(extenders: readonly Extender[], pod: PodInfo, nodes: readonly NodeInfo[]): Promise<readonly number[] | undefined> {
    const asked = extenders.filter((extender) => extender.prioritize)
    if (asked.length === 0) return undefined
    const totals = new Array<number>(nodes.length).fill(0)
    const answers = asked.map(async (extender) => {
      try {
        const scores = await extender.prioritize?.(pod, nodes, this.#signal)
        for (let i = 0; i < nodes.length; i++) totals[i] = (totals[i] ?? 0) + (scores?.get(nodes[i]?.name ?? '') ?? 0) * extender.weight * scoreFactor
      } catch (error) {
        this.#log.info('An extender failed to score nodes', { extender: extender.name, error: String(error) })
      }
    })
    await Promise.all(answers)
    return totals
  }

  async preempt(pod: PodInfo, candidates: readonly PreemptionCandidate[], snapshot: Snapshot): Promise<readonly PreemptionCandidate[]> {
    let left = candidates
    for (const extender of this.#extenders) {
      if (left.length === 0) break
      if (!extender.preempt || !extender.isInterested(pod)) continue
      try {
        const answer = await extender.preempt(pod, left, snapshot, this.#signal)
        const empty = answer.find(({ victims }) => victims.length === 0)
        if (empty && !extender.isIgnorable) throw new Error(`expected at least one victim pod on node "${empty.nodeName}"`)
        left = answer.filter(({ victims }) => victims.length > 0)
      } catch (error) {
        if (!extender.isIgnorable) throw error
        this.#log.info('Skipped an extender that failed and may be ignored', { extender: extender.name, error: String(error) })
      }
    }
    return left
  }
}
