/**
 * Reuses the ranking of nodes for the next pod of the same kind (L3): when the best node is full after one pod, the next best one is tried before all
 * nodes are filtered and scored again. Valid only for the next consecutive pod and for half a second; the filters run again on that node, so that newer changes are noticed.
 * Upstream: pkg/scheduler/framework/runtime/batch.go, framework.go SignPod (v1.36).
 */
import { Heap } from '#base/heap'
import type { Random } from '#base/random'
import type { NodeInfo } from './framework/nodeInfo.ts'
import type { SchedulerPlugin } from './framework/plugin.ts'
import type { PodInfo } from './framework/podInfo.ts'
import type { Profile } from './framework/profile.ts'

const maxAgeMs = 500

export type BatchResult = 'no_hint' | 'hint_used' | 'hint_not_used'
export type BatchFlush = 'pod_skipped' | 'node_missing' | 'node_not_full' | 'empty_list' | 'expired' | 'pod_incompatible' | 'pod_not_batchable'

export interface BatchMetrics {
  attempt(result: BatchResult): void
  flushed(reason: BatchFlush): void
  hintTook(seconds: number, isHinted: boolean): void
  storeTook(seconds: number): void
}

/** What one decision does with the batch. */
export interface CycleBatch {
  /** The node to try first, by name. @param refuses whether a node refuses the pod; undefined: there is no such node */
  hint(refuses: (nodeName: string) => boolean | undefined): string | undefined
  /** @param nodes what fitted and was scored, with the total of each; absent when only one node fitted */
  chose(nodeName: string, nodes?: readonly NodeInfo[], totals?: readonly number[]): void
}

export interface BatchDeps {
  readonly nowMs: () => number
  readonly random: Random
  readonly metrics: BatchMetrics
}

interface RankedNode {
  readonly name: string
  readonly total: number
  readonly tieBreak: number
}

interface Ranking {
  readonly signature: string
  /** The best first. Made when a pod fits the ranking: most rankings are never read. */
  nodes: Heap<RankedNode> | (() => Heap<RankedNode>)
  readonly madeMs: number
}

/** Returns a function that computes a pod's signature: equal for interchangeable pods, undefined for one that cannot be batched. Undefined when a plugin cannot sign. */
export function batchSigner({ points }: Profile): ((pod: PodInfo) => string | undefined) | undefined {
  const plugins = new Map<string, SchedulerPlugin>()
  for (const plugin of [...points.preFilter, ...points.filter, ...points.preScore, ...points.score]) plugins.set(plugin.name, plugin)
  const signs = [...plugins.values()].map((plugin) => (plugin.batchSign ?? plugin.sign)?.bind(plugin))
  if (signs.some((sign) => !sign)) return undefined
  return (pod) => {
    // Claims and affinity terms of other pods belong to a namespace.
    const texts: string[] = [pod.pod.metadata.namespace ?? '']
    for (const sign of signs) {
      const text = sign?.(pod)
      if (text === undefined) return undefined
      texts.push(text)
    }
    return JSON.stringify(texts)
  }
}

export class OpportunisticBatch {
  readonly #deps: BatchDeps
  readonly #sign: ((pod: PodInfo) => string | undefined) | undefined
  #ranking: Ranking | undefined
  #last = { cycle: -1, nodeName: '' }

  /** @param isAlone no extender takes part, whose answers a signature cannot cover */
  constructor(profile: Profile, isAlone: boolean, deps: BatchDeps) {
    this.#deps = deps
    this.#sign = isAlone ? batchSigner(profile) : undefined
  }

  /** @param cycle consecutive pods, of whatever profile, have consecutive numbers */
  begin(pod: PodInfo, cycle: number): CycleBatch {
    const { nowMs, metrics } = this.#deps
    const signature = this.#sign?.(pod)
    let hinted: string | undefined
    return {
      hint: (refuses) => {
        const startedMs = nowMs()
        const unusable = this.#unusable(signature, cycle, refuses)
        if (unusable === undefined) hinted = this.#next()?.name
        else if (unusable !== 'none') metrics.flushed(unusable)
        if (hinted === undefined) metrics.attempt('no_hint')
        metrics.hintTook((nowMs() - startedMs) / 1000, hinted !== undefined)
        return hinted
      },
      chose: (nodeName, nodes, totals) => {
        const startedMs = nowMs()
        this.#last = { cycle, nodeName }
        if (hinted === nodeName) metrics.attempt('hint_used')
        else {
          if (hinted !== undefined) metrics.attempt('hint_not_used')
          this.#store(signature, nodeName, nodes ?? [], totals ?? [])
        }
        metrics.storeTook((nowMs() - startedMs) / 1000)
      },
    }
  }

  /** Undefined: the ranking fits the pod; 'none': there is no ranking. */
  #unusable(signature: string | undefined, cycle: number, refuses: (nodeName: string) => boolean | undefined): BatchFlush | 'none' | undefined {
    const ranking = this.#ranking
    if (!ranking || (ranking.nodes instanceof Heap && ranking.nodes.size === 0)) return 'none'
    if (cycle !== this.#last.cycle + 1) return 'pod_skipped'
    if (signature !== ranking.signature) return 'pod_incompatible'
    if (this.#deps.nowMs() - ranking.madeMs > maxAgeMs) return 'expired'
    // A node that has room for another pod has a new score, which the ranking does not know.
    const isFull = refuses(this.#last.nodeName)
    if (isFull === undefined) return 'node_missing'
    return isFull ? undefined : 'node_not_full'
  }

  #store(signature: string | undefined, chosen: string, nodes: readonly NodeInfo[], totals: readonly number[]): void {
    this.#ranking = undefined
    if (nodes.length < 2 || signature === undefined) {
      this.#deps.metrics.flushed(nodes.length < 2 ? 'empty_list' : 'pod_not_batchable')
      return
    }
    const [names, scored] = [nodes.map(({ name }) => name), [...totals]]
    this.#ranking = { signature, nodes: () => this.#rank(chosen, names, scored), madeMs: this.#deps.nowMs() }
  }

  #rank(chosen: string, names: readonly string[], totals: readonly number[]): Heap<RankedNode> {
    const ranked = new Heap<RankedNode>((a, b) => b.total - a.total || b.tieBreak - a.tieBreak)
    for (const [i, name] of names.entries()) if (name !== chosen) ranked.push({ name, total: totals[i] as number, tieBreak: this.#deps.random.next() })
    return ranked
  }

  /** Takes the best node that is left in the ranking. */
  #next(): RankedNode | undefined {
    const ranking = this.#ranking
    if (!ranking) return undefined
    if (!(ranking.nodes instanceof Heap)) ranking.nodes = ranking.nodes()
    return ranking.nodes.pop()
  }
}
