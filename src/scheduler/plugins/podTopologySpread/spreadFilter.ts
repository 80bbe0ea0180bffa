/**
 * Whether a pod may go to a node without spreading its like too unevenly (L3), with the placements that preemption only tries counted on top.
 * Upstream: plugins/podtopologyspread/filtering.go (v1.36).
 */
import { ownValue } from '#base/bareMap'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import { type FilterResult, reasons, unresolvable, unschedulable } from '../../framework/status.ts'
import type { TriesPods } from '../topology/tryPods.ts'
import type { SpreadConstraints } from './constraints.ts'

/** The filter of one cycle, or of one preemption trial in it. */
export class SpreadFilter implements TriesPods {
  readonly #constraints: SpreadConstraints
  /** Whether the pod itself is one of those that each constraint counts. */
  readonly #countsItself: readonly boolean[]
  /** Constraint by constraint; absent as long as nothing differs from the tables. */
  #changes: Map<string, number>[] | undefined
  /** The fewest of each constraint: the same for all nodes. */
  #fewest: number[] | undefined

  constructor(constraints: SpreadConstraints, countsItself: readonly boolean[], changes?: Map<string, number>[]) {
    this.#constraints = constraints
    this.#countsItself = countsItself
    this.#changes = changes
  }

  clone(): SpreadFilter {
    const changes = this.#changes?.map((one) => new Map(one))
    return new SpreadFilter(this.#constraints, this.#countsItself, changes)
  }

  tryPod(pod: PodInfo, node: NodeInfo, by: 1 | -1): void {
    this.#changes ??= this.#constraints.all.map(() => new Map())
    this.#fewest = undefined
    for (const [i, { table, topologyKey }] of this.#constraints.all.entries()) {
      const value = ownValue(node.node.metadata.labels, topologyKey)
      if (value === undefined || !table.shape.counts(pod) || table.shape.includes?.(node.node) === false) continue
      const changes = this.#changes[i] as Map<string, number>
      changes.set(value, (changes.get(value) ?? 0) + by)
    }
  }

  filter(node: NodeInfo): FilterResult {
    const { all } = this.#constraints
    this.#fewest ??= all.map(({ table, minDomains }, i) => (table.size < minDomains ? 0 : (table.fewest(this.#changes?.[i]) ?? 0)))
    for (let i = 0; i < all.length; i++) {
      const { table, topologyKey, maxSkew } = all[i] as SpreadConstraints['all'][number]
      const around = table.around(node)
      if (around === undefined) return missingLabel
      const there = around + (this.#changes?.[i]?.get(ownValue(node.node.metadata.labels, topologyKey) ?? '') ?? 0)
      if (there + (this.#countsItself[i] ? 1 : 0) - (this.#fewest[i] as number) > maxSkew) return uneven
    }
    return undefined
  }
}

const uneven = unschedulable(reasons.topologySpread)
const missingLabel = unresolvable(reasons.topologySpreadLabel)
