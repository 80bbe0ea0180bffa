/**
 * One scheduling cycle (L3), pure: a pod and a snapshot in, a node or the reasons out. Order as upstream's: PreFilter, Filter until enough nodes
 * fit, PreScore, Score, NormalizeScore times weight, one of the best at random.
 * Upstream: pkg/scheduler/schedule_one.go.
 */
import type { Random } from '#base/random'
import type { NodeInfo, PodInfo } from './framework/nodeInfo.ts'
import { type CycleState, isRefusal, type ScoredNode, type Snapshot } from './framework/plugin.ts'
import { fitMessage, type Refusal } from './framework/status.ts'
import type { ProfilePlugin } from './plugins/index.ts'

export interface Placement {
  readonly node: NodeInfo
  readonly evaluatedNodes: number
  readonly feasibleNodes: number
}

export interface NoFit {
  readonly message: string
  /** Names of the plugins that refused: their events bring the pod back. */
  readonly refusedBy: ReadonlySet<string>
}

export interface ScheduleOptions {
  readonly random: Random
  /** Where to begin looking, so that nodes take turns. */
  readonly startIndex: number
  /** 0: adaptive, as upstream's default. */
  readonly percentageOfNodesToScore: number
}

export type ScheduleResult = { readonly placed: Placement } | { readonly refused: NoFit }

const minFeasibleNodes = 100
const minPercentage = 5

export function schedulePod(plugins: readonly ProfilePlugin[], pod: PodInfo, snapshot: Snapshot, options: ScheduleOptions): ScheduleResult {
  const state: CycleState = new Map()
  const total = snapshot.nodes.length
  const prepared = runPreFilters(plugins, state, pod, snapshot)
  if ('refused' in prepared) return { refused: prepared.refused }
  const { feasible, refusals, refusedBy, evaluated } = runFilters(plugins, prepared, state, pod, snapshot, options)
  if (feasible.length === 0) return { refused: { message: fitMessage(total, refusals), refusedBy } }
  const node = feasible.length === 1 ? (feasible[0] as NodeInfo) : selectHost(score(plugins, state, pod, feasible, snapshot), options.random)
  return { placed: { node, evaluatedNodes: evaluated, feasibleNodes: feasible.length } }
}

interface Prepared {
  readonly skipped: ReadonlySet<string>
  readonly nodeNames: ReadonlySet<string> | undefined
}

function runPreFilters(plugins: readonly ProfilePlugin[], state: CycleState, pod: PodInfo, snapshot: Snapshot): Prepared | { refused: NoFit } {
  const skipped = new Set<string>()
  let nodeNames: ReadonlySet<string> | undefined
  for (const { plugin } of plugins) {
    const result = plugin.preFilter?.(state, pod, snapshot)
    if (result === 'skip') skipped.add(plugin.name)
    else if (isRefusal(result))
      return { refused: { message: fitMessage(snapshot.nodes.length, [], result.reasons.join(', ')), refusedBy: new Set([plugin.name]) } }
    else if (result?.nodeNames) nodeNames = nodeNames ? intersection(nodeNames, result.nodeNames) : result.nodeNames
  }
  return { skipped, nodeNames }
}

function runFilters(plugins: readonly ProfilePlugin[], prepared: Prepared, state: CycleState, pod: PodInfo, snapshot: Snapshot, options: ScheduleOptions) {
  const filters = plugins.map(({ plugin }) => plugin).filter((plugin) => plugin.filter && !prepared.skipped.has(plugin.name))
  const total = snapshot.nodes.length
  const enough = nodesToFind(total, options.percentageOfNodesToScore)
  const feasible: NodeInfo[] = []
  const refusals: Refusal[] = []
  const refusedBy = new Set<string>()
  let evaluated = 0
  for (let step = 0; step < total && feasible.length < enough; step++) {
    const node = snapshot.nodes[(options.startIndex + step) % total] as NodeInfo
    evaluated++
    if (prepared.nodeNames && !prepared.nodeNames.has(node.name)) {
      refusals.push({ code: 'UnschedulableAndUnresolvable', reasons: ["node(s) didn't satisfy plugin(s) [NodeAffinity]"] })
      refusedBy.add('NodeAffinity')
      continue
    }
    let refusal: Refusal | undefined
    for (const plugin of filters) {
      refusal = plugin.filter?.(state, pod, node)
      if (refusal) {
        refusedBy.add(plugin.name)
        break
      }
    }
    if (refusal) refusals.push(refusal)
    else feasible.push(node)
  }
  return { feasible, refusals, refusedBy, evaluated }
}

/** How many feasible nodes are enough. Upstream: numFeasibleNodesToFind. */
export function nodesToFind(total: number, percentage: number): number {
  if (total < minFeasibleNodes) return total
  const adaptive = percentage === 0 ? Math.max(minPercentage, 50 - Math.floor(total / 125)) : percentage
  return Math.max(minFeasibleNodes, Math.floor((total * adaptive) / 100))
}

function score(plugins: readonly ProfilePlugin[], state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: Snapshot): ScoredNode[] {
  const totals: ScoredNode[] = nodes.map((node) => ({ node, score: 0 }))
  for (const { plugin, weight } of plugins) {
    if (!plugin.score || plugin.preScore?.(state, pod, nodes, snapshot) === 'skip') continue
    const scores: ScoredNode[] = nodes.map((node) => ({ node, score: plugin.score?.(state, pod, node, snapshot) ?? 0 }))
    plugin.normalize?.(scores)
    scores.forEach((one, i) => {
      const sum = totals[i]
      if (sum) sum.score += one.score * weight
    })
  }
  return totals
}

/** One of the highest, each with the same chance. */
function selectHost(scores: readonly ScoredNode[], random: Random): NodeInfo {
  const highest = Math.max(...scores.map((one) => one.score))
  const best = scores.filter((one) => one.score === highest)
  return (best[random.int(best.length)] as ScoredNode).node
}

function intersection(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a].filter((name) => b.has(name)))
}
