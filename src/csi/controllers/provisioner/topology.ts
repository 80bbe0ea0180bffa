/**
 * Where a volume shall be accessible, and where it is (L3, pure). A term is a set of labels that a node must have.
 * Upstream: external-provisioner, pkg/controller/topology.go.
 */
import type { Node, PersistentVolume } from '#api/gen/types/core.v1'
import type { CSINode, StorageClass } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { fnv32 } from '#base/fnv'
import type { TextMap, Topology } from '../../server/csiTypes.ts'

/** Pairs of key and value, sorted by key. */
export type Term = readonly (readonly [key: string, value: string])[]

export interface TopologyRequirement {
  readonly requisite: readonly Topology[]
  readonly preferred: readonly Topology[]
}

/** What the first attempt for a claim has found. The next attempts say the same, whatever becomes of the nodes meanwhile. */
export interface TopologyMemory {
  keys?: readonly string[]
  labels?: TextMap
  terms?: readonly Term[]
}

export interface TopologyQuestion {
  readonly driver: string
  readonly claimName: string
  readonly allowed: Frozen<StorageClass>['allowedTopologies']
  /** Undefined: the volume is created before a pod uses it. */
  readonly nodeName: string | undefined
  readonly isStrict: boolean
  /** Without a selected node, the driver gets all topologies. */
  readonly isImmediate: boolean
  readonly memory: TopologyMemory
}

export interface ClusterTopology {
  csiNode(name: string): Frozen<CSINode> | undefined
  csiNodes(): readonly Frozen<CSINode>[]
  node(name: string): Frozen<Node> | undefined
  nodes(): readonly Frozen<Node>[]
}

/** The node that the scheduler has selected is unknown to the driver: another one is needed. */
export class NodeUnknownError extends Error {}

/**
 * @returns undefined: the driver decides alone
 * @throws NodeUnknownError; Error when the topologies are not known yet, or none fits
 */
export function topologyRequirement(question: TopologyQuestion, cluster: ClusterTopology): TopologyRequirement | undefined {
  const selected = question.nodeName === undefined ? undefined : selectedTopology(question.nodeName, question, cluster)
  const requisite = requisiteTerms(question, selected, cluster)
  if (requisite.length === 0) return undefined
  return { requisite: requisite.map(topologyOf), preferred: preferredTerms(question, selected, requisite).map(topologyOf) }
}

const topologyOf = (term: Term): Topology => ({ segments: Object.fromEntries(term) })

interface Selected {
  readonly nodeName: string
  readonly keys: readonly string[]
  readonly term: Term
}

function selectedTopology(nodeName: string, { driver, memory }: TopologyQuestion, cluster: ClusterTopology): Selected {
  const keys = memory.keys ?? registeredKeys(nodeName, driver, cluster)
  if (keys.length === 0) throw new Error(`no topology key found for node ${nodeName}`)
  memory.keys = keys
  const remembered = memory.labels && termOf(memory.labels, keys)
  if (remembered) return { nodeName, keys, term: remembered }
  const labels = cluster.node(nodeName)?.metadata.labels
  const term = termOf(labels ?? {}, keys)
  if (!term)
    throw new Error(`topology labels from selected node ${goMap(labels ?? memory.labels ?? {})} does not match topology keys from CSINode [${keys.join(' ')}]`)
  memory.labels = labels as TextMap
  return { nodeName, keys, term }
}

function registeredKeys(nodeName: string, driver: string, cluster: ClusterTopology): readonly string[] {
  const csiNode = cluster.csiNode(nodeName)
  if (!csiNode) throw new NodeUnknownError(`failed to get selected CSINode ${nodeName}: csinode.storage.k8s.io "${nodeName}" not found`)
  return keysOf(csiNode, driver)
}

const keysOf = ({ spec }: Frozen<CSINode>, driver: string): readonly string[] => spec?.drivers?.find(({ name }) => name === driver)?.topologyKeys ?? []

/** Undefined when a label is missing. */
function termOf(labels: TextMap, keys: readonly string[]): Term | undefined {
  const term = keys.map((key) => [key, ownValue(labels, key)] as const)
  return term.every((pair): pair is readonly [string, string] => pair[1] !== undefined) ? sorted(term) : undefined
}

const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
const sorted = (term: Term): Term => [...term].sort(([a, x], [b, y]) => order(a, b) || order(x, y))

function requisiteTerms(question: TopologyQuestion, selected: Selected | undefined, cluster: ClusterTopology): readonly Term[] {
  const { allowed = [], isStrict, isImmediate } = question
  if (selected && isStrict) return [strictTerm(selected, allowed)]
  if (allowed.length > 0) return distinct(flatten(allowed))
  if (!selected && !isImmediate) return []
  const terms = aggregated(question, selected, cluster)
  if (terms.length === 0) throw new Error('no available topology found')
  return distinct(terms)
}

function strictTerm({ nodeName, term }: Selected, allowed: NonNullable<TopologyQuestion['allowed']>): Term {
  const terms = flatten(allowed)
  if (allowed.length === 0 || terms.some((one) => isPartOf(one, term))) return term
  throw new Error(`selected node '"${nodeName}"' topology '${goTerm(term)}' is not in allowed topologies: [${terms.map(goTerm).join(' ')}]`)
}

/** Sorted, the shorter first, without duplicates: each retry says the same. */
function distinct(terms: readonly Term[]): readonly Term[] {
  const all = [...terms].sort(compareTerms)
  return all.filter((term, index) => index === 0 || compareTerms(term, all[index - 1] ?? []) !== 0)
}

function compareTerms(a: Term, b: Term): number {
  if (a.length !== b.length) return a.length - b.length
  for (const [index, [key, value]] of a.entries()) {
    const [otherKey = '', otherValue = ''] = b[index] ?? []
    const result = order(key, otherKey) || order(value, otherValue)
    if (result !== 0) return result
  }
  return 0
}

/** The terms that allowedTopologies stand for: a list of values is one term for each value. */
function flatten(allowed: NonNullable<TopologyQuestion['allowed']>): readonly Term[] {
  return allowed.flatMap(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions
      .reduce<readonly Term[]>(
        (terms, { key, values }) =>
          values.flatMap((value) => (terms.length === 0 ? [[[key, value]] as Term] : terms.map((term) => [...term, [key, value]] as Term))),
        [],
      )
      .map(sorted),
  )
}

/** Both are sorted. */
function isPartOf(term: Term, other: Term): boolean {
  const values = new Map(other)
  return term.every(([key, value]) => values.get(key) === value)
}

/** The terms of all nodes that have registered the driver. */
export function topologySegments(driver: string, cluster: ClusterTopology): readonly Term[] {
  const registered = registeredKeySets(driver, cluster)
  return distinct(distinctKeySets([...registered.values()]).flatMap((keys) => termsOfNodes(keys, registered, cluster)))
}

/** By node. */
function registeredKeySets(driver: string, cluster: ClusterTopology): ReadonlyMap<string, readonly string[]> {
  return new Map(cluster.csiNodes().map((csiNode) => [csiNode.metadata.name ?? '', keysOf(csiNode, driver)]))
}

function aggregated({ driver, memory }: TopologyQuestion, selected: Selected | undefined, cluster: ClusterTopology): readonly Term[] {
  if (memory.terms) return memory.terms
  const registered = registeredKeySets(driver, cluster)
  const keySets = selected ? [selected.keys] : distinctKeySets([...registered.values()])
  if (keySets.length === 0) return []
  const terms = keySets.flatMap((keys) => termsOfNodes(keys, registered, cluster))
  if (terms.length === 0) {
    const shown = selected ? goList(selected.keys) : `[${keySets.map(goList).join(' ')}]`
    throw new Error(`topologyKeys ${shown} were not found on any nodes`)
  }
  memory.terms = terms
  return terms
}

/** Nodes may register different keys; each set of keys is aggregated alone. */
function distinctKeySets(sets: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const known = new Map(sets.filter((keys) => keys.length > 0).map((keys) => [[...keys].sort(order).join('\0'), [...keys].sort(order)]))
  return [...known].sort(([a], [b]) => order(a, b)).map(([, keys]) => keys)
}

/** A node that has the labels but whose driver did not register the keys does not count. */
function termsOfNodes(keys: readonly string[], registered: ReadonlyMap<string, readonly string[]>, cluster: ClusterTopology): readonly Term[] {
  return cluster.nodes().flatMap(({ metadata }) => {
    const own = registered.get(metadata.name ?? '') ?? []
    const term = keys.every((key) => own.includes(key)) ? termOf(metadata.labels ?? {}, keys) : undefined
    return term ? [term] : []
  })
}

function preferredTerms({ claimName, isStrict }: TopologyQuestion, selected: Selected | undefined, requisite: readonly Term[]): readonly Term[] {
  if (selected && isStrict) return requisite
  const first = selected ? requisite.findIndex((term) => isPartOf(term, selected.term)) : spreadOf(claimName) % requisite.length
  if (first >= 0) return [...requisite.slice(first), ...requisite.slice(0, first)]
  throw new Error(
    `topology ${goTerm(selected?.term ?? [])} from selected node "${selected?.nodeName}" is not in requisite: [${requisite.map(goTerm).join(' ')}]`,
  )
}

/** Claims of a StatefulSet, `claim-set-7`, are spread by their number; those of one pod come out alike. */
function spreadOf(claimName: string): number {
  const [, before, digits] = /^(.*)-(\d+)$/s.exec(claimName) ?? []
  const index = Number(digits)
  if (before === undefined || index > 0xffff_ffff) return fnv32(claimName)
  return (fnv32(before.slice(before.lastIndexOf('-') + 1)) + index) >>> 0
}

/** As Go prints them. */
const goList = (items: readonly string[]) => `[${items.join(' ')}]`
const goTerm = (term: Term) => goList(term.map(([key, value]) => `{${key} ${value}}`))
const goMap = (map: TextMap) =>
  `map${goList(
    Object.keys(map)
      .sort(order)
      .map((key) => `${key}:${map[key]}`),
  )}`

/** The nodes that reach a volume, by the topology that the driver reports. */
export function nodeAffinityOf(topologies: readonly Topology[]): PersistentVolume['spec']['nodeAffinity'] {
  if (topologies.length === 0) return undefined
  const terms = topologies.map(({ segments }) =>
    Object.keys(segments)
      .sort(order)
      .map((key) => ({ key, operator: 'In', values: [segments[key] ?? ''] })),
  )
  return { required: { nodeSelectorTerms: terms.filter((one) => one.length > 0).map((matchExpressions) => ({ matchExpressions })) } }
}
