/**
 * The spread constraints of a pod, compiled, each with the table that counts its pods (L3). Pods of one template share them.
 * Upstream: plugins/podtopologyspread/common.go (v1.36).
 */
import type { Node, Pod, Taint, TopologySpreadConstraint } from '#api/gen/types/core.v1'
import { podMatchesNodeSelectorAndAffinity } from '#api/helpers/nodes'
import { findUntoleratedTaint } from '#api/helpers/taints'
import { both, type Selector, selectorOf, selectorOfMap } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { emptyMap, ownValue } from '#base/bareMap'
import { LruCache } from '#base/lruCache'
import type { PodInfo } from '../../framework/podInfo.ts'
import type { Snapshot } from '../../framework/snapshot.ts'
import type { DomainTable } from '../topology/domainTable.ts'
import type { DomainTables } from '../topology/domainTables.ts'

export type WhenUnsatisfiable = 'DoNotSchedule' | 'ScheduleAnyway'

export interface SpreadConstraint {
  readonly maxSkew: number
  readonly minDomains: number
  readonly topologyKey: string
  readonly selector: Selector
  /** Whether nodes that the pod's own node affinity, or taints, keep it from are left out. */
  readonly honorsAffinity: boolean
  readonly honorsTaints: boolean
  /** Counts the pods that the selector matches, on the nodes that count. */
  readonly table: DomainTable
}

/** One pod's constraints of one kind. */
export interface SpreadConstraints {
  readonly all: readonly SpreadConstraint[]
  /** Whether nodes without one of the keys are left out altogether. */
  readonly requiresAllKeys: boolean
}

interface Compiled {
  readonly number: number
  readonly constraints: readonly Omit<SpreadConstraint, 'table'>[]
}

/** The result for one pod is valid for all pods with the same spreading signature. */
const mostKept = 256

export class ConstraintCompiler {
  readonly #tables: DomainTables
  readonly #kept = new LruCache<string, Compiled>(mostKept)
  #made = 0

  constructor(tables: DomainTables) {
    this.#tables = tables
  }

  /** @param selector replaces the constraints' own: for default constraints, which have none */
  compile(
    pod: Frozen<Pod>,
    constraints: readonly Frozen<TopologySpreadConstraint>[],
    snapshot: Snapshot,
    options: { readonly selector?: Selector | undefined; readonly requiresAllKeys: boolean },
  ): SpreadConstraints {
    const text = describe(pod, constraints, options.selector)
    let compiled = this.#kept.get(text)
    if (!compiled) {
      // The text may be as long as the pod: tables are found by a number that stands for it.
      compiled = { number: this.#made++, constraints: constraints.map((constraint) => compileOne(pod, constraint, options.selector)) }
      this.#kept.set(text, compiled)
    }
    const { number } = compiled
    const keys = options.requiresAllKeys ? compiled.constraints.map(({ topologyKey }) => topologyKey) : []
    const all = compiled.constraints.map((one, i) => {
      const table = this.#tables.get(`${options.requiresAllKeys} ${i} ${number}`, snapshot, () => ({
        topologyKey: one.topologyKey,
        counts: countedPods(pod.metadata.namespace, one.selector),
        includes: (node) => hasAllKeys(node, keys) && isIncluded(one, pod, node),
      }))
      return { ...one, table }
    })
    return { all, requiresAllKeys: options.requiresAllKeys }
  }
}

/** Everything that the compiled constraints and their tables depend on. */
function describe(pod: Frozen<Pod>, constraints: readonly Frozen<TopologySpreadConstraint>[], selector: Selector | undefined): string {
  const { metadata, spec } = pod
  const byLabels = constraints.map(({ matchLabelKeys }) => matchLabelKeys?.map((key) => ownValue(metadata.labels, key)))
  const tolerations = constraints.some(({ nodeTaintsPolicy }) => nodeTaintsPolicy === 'Honor') ? spec.tolerations : undefined
  const affinity = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return JSON.stringify([metadata.namespace, constraints, selector?.toString(), byLabels, spec.nodeSelector, affinity, tolerations])
}

function compileOne(pod: Frozen<Pod>, constraint: Frozen<TopologySpreadConstraint>, replacing: Selector | undefined): Omit<SpreadConstraint, 'table'> {
  const labels: Record<string, string> = emptyMap()
  for (const key of constraint.matchLabelKeys ?? []) {
    const value = ownValue(pod.metadata.labels, key)
    if (value !== undefined) labels[key] = value
  }
  return {
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains ?? 1,
    topologyKey: constraint.topologyKey,
    selector: replacing ?? both(selectorOf(constraint.labelSelector), selectorOfMap(labels)),
    honorsAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  }
}

/** Pods that are being deleted do not count any more. */
function countedPods(namespace: string | undefined, selector: Selector): (pod: PodInfo) => boolean {
  return ({ pod: { metadata } }) => metadata.namespace === namespace && metadata.deletionTimestamp === undefined && selector.matches(metadata.labels)
}

export function hasAllKeys(node: Frozen<Node>, keys: readonly string[]): boolean {
  const labels = node.metadata.labels
  for (const key of keys) if (ownValue(labels, key) === undefined) return false
  return true
}

function isIncluded(
  { honorsAffinity, honorsTaints }: Pick<SpreadConstraint, 'honorsAffinity' | 'honorsTaints'>,
  pod: Frozen<Pod>,
  node: Frozen<Node>,
): boolean {
  if (honorsAffinity && !podMatchesNodeSelectorAndAffinity(pod, node)) return false
  return !(honorsTaints && findUntoleratedTaint(node.spec?.taints, pod.spec.tolerations, keepsOut))
}

const keepsOut = ({ effect }: Frozen<Taint>) => effect === 'NoSchedule' || effect === 'NoExecute'
