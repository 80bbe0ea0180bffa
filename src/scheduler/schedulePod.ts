/**
 * The decision of one scheduling cycle (L3): a pod and a snapshot in, a node or the reasons out. Order as upstream's: PreFilter, Filter until
 * enough nodes fit, extenders, PreScore, Score, NormalizeScore times weight, one of the best at random.
 * Upstream: pkg/scheduler/schedule_one.go schedulePod (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { Random } from '#base/random'
import { CycleState } from './framework/cycleState.ts'
import type { NodeInfo } from './framework/nodeInfo.ts'
import { type NodeRefusal, NodeRefusals } from './framework/nodeRefusals.ts'
import type { SchedulerPlugin } from './framework/plugin.ts'
import type { PodInfo } from './framework/podInfo.ts'
import type { Profile } from './framework/profile.ts'
import type { Snapshot } from './framework/snapshot.ts'
import { isRefusal, type Refusal, unresolvable } from './framework/status.ts'
import type { AnswerMemory, NodeAnswers } from './nodeAnswers.ts'
import type { CycleBatch } from './opportunisticBatch.ts'
import { extendersName } from './queueingHints.ts'

export interface Placement {
  readonly node: NodeInfo
  readonly state: CycleState
  readonly evaluatedNodes: number
  readonly feasibleNodes: number
  /** What each plugin gave the winner, weight included. */
  readonly scores: readonly PluginScore[]
}

export interface PluginScore {
  readonly plugin: string
  readonly score: number
}

export interface NoFit {
  readonly state: CycleState
  readonly refusals: NodeRefusals
  readonly evaluatedNodes: number
  readonly preFilterMessage?: string | undefined
  /** Names of the plugins that refused: their events bring the pod back. */
  readonly refusedBy: Set<string>
  /** Plugins among them that only wait for something they have started. */
  readonly pendingOn: Set<string>
}

/** Extenders that take part in the cycle over HTTP. */
export interface CycleExtenders {
  filter(pod: PodInfo, nodes: readonly NodeInfo[], refusals: NodeRefusals): Promise<readonly NodeInfo[]>
  /** Added to the nodes' scores. */
  prioritize(pod: PodInfo, nodes: readonly NodeInfo[]): Promise<readonly number[] | undefined>
}

/** The extension points as metrics name them. */
export type CyclePoint = 'PreFilter' | 'Filter' | 'PostFilter' | 'PreScore' | 'Score' | 'Reserve' | 'Permit' | 'PreBind' | 'Bind' | 'PostBind'

/** Notified when an extension point has ended; its time is counted from the end of the one before. */
export interface CycleTimer {
  done(point: CyclePoint, status: 'Success' | Refusal['code']): void
  /** Counts the calls of a plugin that were not skipped: for Filter and Score one for each node. */
  asked(point: 'PreFilter' | 'Filter' | 'PreScore' | 'Score', plugin: string, times: number): void
}

export interface ScheduleOptions {
  readonly random: Random
  /** Where to begin looking, so that nodes take turns. */
  readonly startIndex: number
  /** 0: adaptive, as upstream's default. */
  readonly percentageOfNodesToScore: number
  /** Pods nominated to a node; absent when no pod is nominated to any node. */
  readonly nominatedTo?: ((nodeName: string) => readonly PodInfo[]) | undefined
  /** Present when some extender is interested in the pod. */
  readonly extenders?: CycleExtenders | undefined
  readonly timer?: CycleTimer | undefined
  /** Earlier answers about nodes; absent: every plugin evaluates every node. */
  readonly answers?: AnswerMemory | undefined
  /** The ranking of nodes by the pod before; absent: none is reused. */
  readonly batch?: CycleBatch | undefined
  /** Written over by each decision, so that one after another needs no new arrays as long as the nodes that fit. */
  readonly scoreRows?: number[][] | undefined
}

export type ScheduleResult = { readonly placed: Placement } | { readonly refused: NoFit }

const minFeasibleNodes = 100
const minPercentage = 5

/** A promise only where extenders are asked: without them a decision is taken in one go. */
export function schedulePod(profile: Profile, pod: PodInfo, snapshot: Snapshot, options: ScheduleOptions): ScheduleResult | Promise<ScheduleResult> {
  const state = new CycleState()
  const prepared = runPreFilters(profile, state, pod, snapshot, options.timer)
  if ('refused' in prepared) {
    options.timer?.done('PreFilter', prepared.refused.refusals.absent.code)
    return prepared
  }
  options.timer?.done('PreFilter', 'Success')
  const cycle: Cycle = { profile, state, pod, snapshot, options }
  const hinted = options.batch?.hint((name) => refuses(cycle, name))
  const firstName = pod.pod.status?.nominatedNodeName || hinted
  const first = firstName ? snapshot.get(firstName) : undefined
  const found =
    (first && !options.extenders && (!prepared.nodeNames || prepared.nodeNames.has(first.name)) ? tryNominated(cycle, first) : undefined) ??
    findFeasible(cycle, prepared)
  options.timer?.done('Filter', found.feasible.length > 0 ? 'Success' : 'Unschedulable')
  if (options.extenders && found.feasible.length > 0) return askExtenders(cycle, options.extenders, found)
  return choose(cycle, found)
}

/** One scheduling cycle of a pod. */
interface Cycle {
  readonly profile: Profile
  readonly state: CycleState
  readonly pod: PodInfo
  readonly snapshot: Snapshot
  readonly options: ScheduleOptions
}

interface Found {
  readonly feasible: readonly NodeInfo[]
  readonly refusals: NodeRefusals
  readonly refusedBy: Set<string>
  readonly evaluated: number
}

async function askExtenders(cycle: Cycle, extenders: CycleExtenders, found: Found): Promise<ScheduleResult> {
  const { pod } = cycle
  const feasible = await extenders.filter(pod, found.feasible, found.refusals)
  const extra = feasible.length > 1 ? await extenders.prioritize(pod, feasible) : undefined
  const refusedBy = feasible.length < found.feasible.length ? new Set([...found.refusedBy, extendersName]) : found.refusedBy
  return choose(cycle, { ...found, feasible, refusedBy }, extra)
}

function choose(cycle: Cycle, { feasible, refusals, refusedBy, evaluated }: Found, extra?: readonly number[]): ScheduleResult {
  const { state, options } = cycle
  if (feasible.length === 0) return { refused: { state, refusals, refusedBy, pendingOn: new Set(), evaluatedNodes: evaluated } }
  const common = { state, evaluatedNodes: evaluated, feasibleNodes: feasible.length }
  if (feasible.length === 1) {
    const node = feasible[0] as NodeInfo
    options.batch?.chose(node.name)
    return { placed: { ...common, node, scores: [] } }
  }
  const { totals, parts } = score(cycle, feasible)
  if (extra) for (let i = 0; i < totals.length; i++) totals[i] = (totals[i] as number) + (extra[i] ?? 0)
  const winner = selectHost(totals, options.random)
  options.batch?.chose((feasible[winner] as NodeInfo).name, feasible, totals)
  const scores = parts.map(({ plugin, weight, scores: given }) => ({ plugin, score: (given[winner] as number) * weight }))
  return { placed: { ...common, node: feasible[winner] as NodeInfo, scores } }
}

interface Prepared {
  /** Only these nodes can fit. */
  readonly nodeNames: ReadonlySet<string> | undefined
  /** Plugins whose PreFilter limited the nodes. */
  readonly narrowedBy: readonly string[]
}

function runPreFilters(profile: Profile, state: CycleState, pod: PodInfo, snapshot: Snapshot, timer: CycleTimer | undefined): Prepared | { refused: NoFit } {
  let nodeNames: ReadonlySet<string> | undefined
  const narrowedBy: string[] = []
  for (const plugin of profile.points.preFilter) {
    const result = plugin.preFilter(state, pod, snapshot)
    if (result === 'skip') {
      state.skipFilter.add(plugin.name)
      continue
    }
    timer?.asked('PreFilter', plugin.name, 1)
    if (isRefusal(result)) return { refused: refusedBeforehand(state, result, [plugin.name]) }
    else if (result?.nodeNames) {
      narrowedBy.push(plugin.name)
      nodeNames = nodeNames ? intersection(nodeNames, result.nodeNames) : result.nodeNames
      if (nodeNames.size === 0) return { refused: refusedBeforehand(state, unresolvable(noneLeft(narrowedBy)), narrowedBy) }
    }
  }
  return { nodeNames, narrowedBy: narrowedBy.sort() }
}

function noneLeft(plugins: readonly string[]): string {
  if (plugins.length === 1) return `node(s) didn't satisfy plugin ${plugins[0]}`
  return `node(s) didn't satisfy plugin(s) [${[...plugins].sort().join(' ')}] simultaneously`
}

function refusedBeforehand(state: CycleState, refusal: Refusal, by: readonly string[]): NoFit {
  const pendingOn = new Set(refusal.code === 'Pending' ? by : [])
  const refusedBy = new Set(refusal.code === 'Pending' ? [] : by)
  return { state, refusals: new NodeRefusals(refusal), evaluatedNodes: 0, preFilterMessage: refusal.reasons.join(', '), refusedBy, pendingOn }
}

/** Whether a node refuses the pod, without regard to nominated pods; undefined: it is gone. A filter that fails refuses nothing. */
function refuses({ profile, state, pod, snapshot }: Cycle, nodeName: string): boolean | undefined {
  const node = snapshot.get(nodeName)
  if (!node) return undefined
  try {
    return filterNode({ filters: activeFilters(profile, state), profile, state, pod, nominatedTo: undefined }, node) !== undefined
  } catch {
    return false
  }
}

/** The node that was made free for the pod, or is best by the ranking of the pod before, is taken when it fits now, without looking at others. */
function tryNominated({ profile, state, pod, options: { nominatedTo, timer } }: Cycle, node: NodeInfo): Found | undefined {
  const filters = activeFilters(profile, state)
  const tally = new FilterTally(filters)
  const refused = filterNode({ filters, profile, state, pod, nominatedTo, tally }, node)
  tally.tell(timer)
  if (refused) return undefined
  return { feasible: [node], refusals: new NodeRefusals(), refusedBy: new Set(), evaluated: 0 }
}

type FilterPlugin = Profile['points']['filter'][number]

function activeFilters(profile: Profile, state: CycleState): readonly FilterPlugin[] {
  return profile.points.filter.filter((plugin) => !state.skipFilter.has(plugin.name))
}

function findFeasible({ profile, state, pod, snapshot, options }: Cycle, prepared: Prepared): Found {
  const filters = activeFilters(profile, state)
  const nodes = prepared.nodeNames ? namedNodes(prepared.nodeNames, snapshot) : snapshot.nodes
  const total = nodes.length
  const enough = nodesToFind(total, profile.percentageOfNodesToScore ?? options.percentageOfNodesToScore)
  // As long as it will be, mostly: growing step by step costs three times as much.
  const feasible = new Array<NodeInfo>(Math.min(enough, total))
  let count = 0
  const refusals = new NodeRefusals(prepared.nodeNames ? unresolvable(`node(s) didn't satisfy plugin(s) [${prepared.narrowedBy.join(' ')}]`) : undefined)
  const refusedBy = new Set<string>(prepared.nodeNames ? prepared.narrowedBy : [])
  let at = total === 0 ? 0 : options.startIndex % total
  let evaluated = 0
  const tally = new FilterTally(filters)
  const trial: FilterTrial = { filters, profile, state, pod, nominatedTo: options.nominatedTo, tally }
  // Pods that are nominated to a node count in addition to the node's own pods.
  const known = options.nominatedTo ? undefined : options.answers?.filters(filters, pod)
  for (; evaluated < total && count < enough; evaluated++) {
    const node = nodes[at] as NodeInfo
    at = at + 1 === total ? 0 : at + 1
    let refused: NodeRefusal | undefined
    if (known?.has(node)) refused = known.get(node)
    else {
      refused = filterNode(trial, node)
      known?.set(node, refused)
    }
    if (!refused) feasible[count++] = node
    else {
      refusedBy.add(refused.plugin)
      refusals.add(node.name, refused)
    }
  }
  tally.tell(options.timer)
  feasible.length = count
  return { feasible, refusals, refusedBy, evaluated }
}

/** How often each filter was asked, counted once for each node: all are asked up to the one that refuses. */
export class FilterTally {
  readonly #filters: readonly FilterPlugin[]
  readonly #refusals: number[]
  asked = 0

  constructor(filters: readonly FilterPlugin[]) {
    this.#filters = filters
    this.#refusals = new Array<number>(filters.length).fill(0)
  }

  refusedAt(index: number): void {
    this.#refusals[index] = (this.#refusals[index] as number) + 1
  }

  tell(timer: CycleTimer | undefined): void {
    let asked = this.asked
    for (let i = 0; i < this.#filters.length && asked > 0; i++) {
      timer?.asked('Filter', (this.#filters[i] as FilterPlugin).name, asked)
      asked -= this.#refusals[i] as number
    }
  }
}

function namedNodes(names: ReadonlySet<string>, snapshot: Snapshot): NodeInfo[] {
  const found: NodeInfo[] = []
  for (const name of names) {
    const node = snapshot.get(name)
    if (node) found.push(node)
  }
  return found
}

/** The filters and the pod that nodes are tried for. */
export interface FilterTrial {
  readonly filters: readonly FilterPlugin[]
  readonly profile: Profile
  readonly state: CycleState
  readonly pod: PodInfo
  readonly nominatedTo: ScheduleOptions['nominatedTo']
  readonly tally?: FilterTally | undefined
}

/**
 * Asks the filters about one node. Where pods are nominated that matter as much, the pod has to fit both with them (they may get there first) and
 * without them (they may go elsewhere, and pods that must be together would not be). Upstream: RunFilterPluginsWithNominatedPods.
 */
export function filterNode({ filters, profile, state, pod, nominatedTo, tally }: FilterTrial, node: NodeInfo): NodeRefusal | undefined {
  const nominated = nominatedTo ? rivals(pod, nominatedTo(node.name)) : nobody
  if (nominated.length > 0) {
    const stateWith = state.clone()
    const nodeWith = node.clone()
    for (const other of nominated) {
      nodeWith.add(other)
      for (const plugin of profile.points.preFilter) if (!state.skipFilter.has(plugin.name)) plugin.addPod?.(stateWith, pod, other, nodeWith)
    }
    const refused = askFilters(filters, stateWith, pod, nodeWith, tally)
    if (refused) return refused
  }
  return askFilters(filters, state, pod, node, tally)
}

const nobody: readonly PodInfo[] = []

function rivals(pod: PodInfo, nominated: readonly PodInfo[]): readonly PodInfo[] {
  return nominated.length === 0 ? nobody : nominated.filter((other) => other.priority >= pod.priority && other.pod.metadata.uid !== pod.pod.metadata.uid)
}

function askFilters(
  filters: readonly FilterPlugin[],
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  tally: FilterTally | undefined,
): NodeRefusal | undefined {
  if (tally) tally.asked++
  let asked = ''
  try {
    for (let i = 0; i < filters.length; i++) {
      const plugin = filters[i] as FilterPlugin
      asked = plugin.name
      const refusal = plugin.filter(state, pod, node)
      if (refusal) {
        tally?.refusedAt(i)
        return { refusal, plugin: plugin.name }
      }
    }
  } catch (error) {
    throw new Error(`running "${asked}" filter plugin: ${messageOf(error)}`, { cause: error })
  }
  return undefined
}

/** The filters that PreFilter did not skip for the pod of a state. */
export function filtersOf(profile: Profile, state: CycleState): readonly FilterPlugin[] {
  return activeFilters(profile, state)
}

/** How many feasible nodes are enough. Upstream: numFeasibleNodesToFind. */
export function nodesToFind(total: number, percentage: number): number {
  if (total < minFeasibleNodes) return total
  const adaptive = percentage === 0 ? Math.max(minPercentage, 50 - Math.floor(total / 125)) : percentage
  return Math.max(minFeasibleNodes, Math.floor((total * adaptive) / 100))
}

type ScorePlugin = Profile['points']['score'][number]

interface ScorePart {
  readonly plugin: string
  readonly weight: number
  readonly scores: readonly number[]
}

function score(cycle: Cycle, nodes: readonly NodeInfo[]): { totals: number[]; parts: ScorePart[] } {
  const { profile, state, pod, snapshot, options } = cycle
  const { timer, answers, scoreRows = [] } = options
  for (const plugin of profile.points.preScore) {
    if (plugin.preScore(state, pod, nodes, snapshot) === 'skip') state.skipScore.add(plugin.name)
    else timer?.asked('PreScore', plugin.name, 1)
  }
  timer?.done('PreScore', 'Success')
  const totals = rowOf(scoreRows, profile.points.score.length, nodes.length).fill(0)
  const parts: ScorePart[] = []
  for (let i = 0; i < profile.points.score.length; i++) {
    const plugin = profile.points.score[i] as ScorePlugin
    if (state.skipScore.has(plugin.name)) continue
    const weight = profile.weights[i] as number
    const scores = rowOf(scoreRows, i, nodes.length)
    const asked = scoreNodes(cycle, plugin, nodes, answers?.scores(plugin, pod), scores)
    timer?.asked('Score', plugin.name, asked)
    plugin.normalize?.(scores, state, pod, nodes)
    for (let n = 0; n < scores.length; n++) totals[n] = (totals[n] as number) + checked(scores[n] as number, plugin) * weight
    parts.push({ plugin: plugin.name, weight, scores })
  }
  timer?.done('Score', 'Success')
  return { totals, parts }
}

/** Fills in the scores. Returns about how many of the nodes the plugin was asked. */
function scoreNodes(
  { state, pod, snapshot }: Cycle,
  plugin: ScorePlugin,
  nodes: readonly NodeInfo[],
  known: NodeAnswers<number> | undefined,
  scores: number[],
): number {
  if (!known) {
    for (let n = 0; n < scores.length; n++) scores[n] = plugin.score(state, pod, nodes[n] as NodeInfo, snapshot)
    return scores.length
  }
  let asked = 0
  for (let n = 0; n < scores.length; n++) {
    const node = nodes[n] as NodeInfo
    if (known.has(node)) scores[n] = known.get(node)
    else {
      scores[n] = plugin.score(state, pod, node, snapshot)
      known.set(node, scores[n] as number)
      asked++
    }
  }
  return asked
}

function rowOf(rows: number[][], index: number, length: number): number[] {
  let row = rows[index]
  if (!row) {
    row = new Array<number>(length)
    rows[index] = row
  }
  row.length = length
  return row
}

function checked(given: number, plugin: SchedulerPlugin): number {
  if (given >= 0 && given <= 100) return given
  throw new Error(`plugin ${plugin.name} returns an invalid score ${given}, it should in the range of [0, 100] after normalizing`)
}

/** The index of one of the highest, each with the same chance. */
function selectHost(totals: readonly number[], random: Random): number {
  let highest = Number.NEGATIVE_INFINITY
  let count = 0
  for (const total of totals) {
    if (total > highest) {
      highest = total
      count = 1
    } else if (total === highest) count++
  }
  let left = random.int(count)
  return totals.findIndex((total) => total === highest && left-- === 0)
}

function intersection(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a].filter((name) => b.has(name)))
}
