/**
 * How crowded a node's domains are with the pod's like (L3): the fewer, the better, and a domain of few weighs less than one of many.
 * Upstream: plugins/podtopologyspread/scoring.go (v1.36).
 */
import { ownValue } from '#base/bareMap'
import type { StateData } from '../../framework/cycleState.ts'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import { maxNodeScore } from '../../framework/plugin.ts'
import { hasAllKeys, type SpreadConstraint, type SpreadConstraints } from './constraints.ts'

export const hostnameLabel = 'kubernetes.io/hostname'

export class SpreadScore implements StateData {
  readonly #constraints: readonly SpreadConstraint[]
  /** Nodes that lack a key, where all are required. */
  readonly #ignored = new Set<NodeInfo>()
  readonly #weights: readonly number[]

  constructor({ all, requiresAllKeys }: SpreadConstraints, nodes: readonly NodeInfo[]) {
    this.#constraints = all
    const keys = all.map(({ topologyKey }) => topologyKey)
    if (requiresAllKeys) for (const node of nodes) if (!hasAllKeys(node.node, keys)) this.#ignored.add(node)
    this.#weights = keys.map((key) => Math.log(this.#domainsAmong(nodes, key) + 2))
  }

  /** Nothing in it changes. */
  clone(): SpreadScore {
    return this
  }

  #domainsAmong(nodes: readonly NodeInfo[], key: string): number {
    if (key === hostnameLabel) return nodes.length - this.#ignored.size
    const values = new Set<string>()
    for (const node of nodes) if (!this.#ignored.has(node)) values.add(ownValue(node.node.metadata.labels, key) ?? '')
    return values.size
  }

  score(node: NodeInfo): number {
    if (this.#ignored.has(node)) return 0
    let score = 0
    for (let i = 0; i < this.#constraints.length; i++) {
      const { table, topologyKey, maxSkew } = this.#constraints[i] as SpreadConstraint
      const around = table.around(node)
      if (around === undefined) continue
      const pods = topologyKey === hostnameLabel ? table.onNode(node) : around
      score += pods * (this.#weights[i] as number) + (maxSkew - 1)
    }
    return Math.round(score)
  }

  /** The least crowded gets the most; ignored nodes get nothing. */
  normalize(scores: number[], nodes: readonly NodeInfo[]): void {
    let highest = 0
    let lowest = Number.POSITIVE_INFINITY
    for (let i = 0; i < scores.length; i++) {
      if (this.#ignored.has(nodes[i] as NodeInfo)) continue
      highest = Math.max(highest, scores[i] as number)
      lowest = Math.min(lowest, scores[i] as number)
    }
    for (let i = 0; i < scores.length; i++) {
      if (this.#ignored.has(nodes[i] as NodeInfo)) scores[i] = 0
      else if (highest === 0) scores[i] = maxNodeScore
      else scores[i] = Math.floor((maxNodeScore * (highest + lowest - (scores[i] as number))) / highest)
    }
  }
}
