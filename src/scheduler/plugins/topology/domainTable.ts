/**
 * How many of certain pods run in each topology domain (L3): a zone, a host, whatever a label of the nodes names. Kept in step with the
 * placements one change at a time, so that a scheduling cycle does not count pods again. A pod is matched once, a node whenever it changes.
 * Cycles read hundreds of nodes, so each node refers to its domain without a look-up.
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { countIn, type NodeInfo } from '../../framework/nodeInfo.ts'
import type { PodInfo } from '../../framework/podInfo.ts'

export interface DomainTableShape {
  /** The label of nodes whose value names the domain. */
  readonly topologyKey: string
  /** Which pods are counted. */
  counts(pod: PodInfo): boolean
  /** Which nodes make up domains; those without the label never do. Absent: all others. */
  includes?(node: Frozen<Node>): boolean
}

interface Domain {
  readonly value: string
  pods: number
  nodes: number
}

interface NodeCount {
  pods: number
  /** Absent: the node belongs to no domain. */
  domain: Domain | undefined
}

/** Deviations of a clone from the table: domain → how many pods more or fewer. */
export type DomainChanges = ReadonlyMap<string, number>

export class DomainTable {
  readonly shape: DomainTableShape
  readonly #domains = new Map<string, Domain>()
  /** By the nodes' slots. */
  readonly #nodes: (NodeCount | undefined)[] = []
  /** Number of pods → how many domains have it. */
  readonly #histogram = new Map<number, number>()
  #total = 0

  constructor(shape: DomainTableShape, nodes: Iterable<NodeInfo>) {
    this.shape = shape
    for (const node of nodes) this.setNode(node)
  }

  /** How many domains there are. */
  get size(): number {
    return this.#domains.size
  }

  /** Pods counted in all domains together. */
  get total(): number {
    return this.#total
  }

  /** Pods of a domain; 0 where there is no such domain. */
  inDomain(value: string): number {
    return this.#domains.get(value)?.pods ?? 0
  }

  /** Pods of the domain that the node's label names, whether or not the node is one of those that make it up; undefined without the label. */
  around(node: NodeInfo): number | undefined {
    const domain = this.#at(node)?.domain
    if (domain) return domain.pods
    const value = ownValue(node.node.metadata.labels, this.shape.topologyKey)
    return value === undefined ? undefined : this.inDomain(value)
  }

  /** Pods counted on one node, whether or not it belongs to a domain. */
  onNode(node: NodeInfo): number {
    return this.#at(node)?.pods ?? 0
  }

  /** The fewest pods that any domain has; undefined without domains. */
  fewest(changes?: DomainChanges): number | undefined {
    let histogram = this.#histogram
    if (changes && changes.size > 0) {
      histogram = new Map(histogram)
      for (const [value, by] of changes) {
        const domain = this.#domains.get(value)
        if (!domain) continue
        countIn(histogram, domain.pods, -1)
        countIn(histogram, domain.pods + by, 1)
      }
    }
    let fewest: number | undefined
    for (const pods of histogram.keys()) if (fewest === undefined || pods < fewest) fewest = pods
    return fewest
  }

  podAdded(pod: PodInfo, node: NodeInfo): void {
    this.#change(pod, node, 1)
  }

  podRemoved(pod: PodInfo, node: NodeInfo): void {
    this.#change(pod, node, -1)
  }

  setNode(node: NodeInfo): void {
    // The pods of a node without the label are counted when it gets one.
    if (!this.#at(node) && ownValue(node.node.metadata.labels, this.shape.topologyKey) === undefined) return
    const there = this.#known(node)
    const value = this.#domainOf(node.node)
    if (there.domain?.value === value) return
    this.#leave(there)
    if (value === undefined) return
    there.domain = this.#domains.get(value)
    if (!there.domain) {
      there.domain = { value, pods: there.pods, nodes: 1 }
      this.#domains.set(value, there.domain)
      countIn(this.#histogram, there.pods, 1)
    } else {
      there.domain.nodes++
      this.#count(there.domain, there.pods)
    }
    this.#total += there.pods
  }

  removeNode(node: NodeInfo): void {
    const there = this.#at(node)
    if (!there) return
    this.#leave(there)
    // Pods that still run on it are counted again when the node returns.
    this.#nodes[node.slot] = undefined
  }

  #at({ slot }: NodeInfo): NodeCount | undefined {
    return slot < 0 ? undefined : this.#nodes[slot]
  }

  #domainOf(node: Frozen<Node>): string | undefined {
    const value = ownValue(node.metadata.labels, this.shape.topologyKey)
    return value === undefined || this.shape.includes?.(node) === false ? undefined : value
  }

  #change(pod: PodInfo, node: NodeInfo, by: 1 | -1): void {
    const there = this.#at(node)
    if (!there || !this.shape.counts(pod)) return
    there.pods += by
    const { domain } = there
    if (!domain) return
    this.#count(domain, by)
    this.#total += by
  }

  /** A node that is new to the table brings the pods that it has. */
  #known(node: NodeInfo): NodeCount {
    let there = this.#at(node)
    if (there) return there
    let pods = 0
    for (const pod of node.pods.values()) if (this.shape.counts(pod)) pods++
    there = { pods, domain: undefined }
    this.#nodes[node.slot] = there
    return there
  }

  #leave(there: NodeCount): void {
    const { domain } = there
    if (!domain) return
    there.domain = undefined
    this.#total -= there.pods
    if (--domain.nodes > 0) this.#count(domain, -there.pods)
    else {
      this.#domains.delete(domain.value)
      countIn(this.#histogram, domain.pods, -1)
    }
  }

  #count(domain: Domain, by: number): void {
    if (by === 0) return
    countIn(this.#histogram, domain.pods, -1)
    domain.pods += by
    countIn(this.#histogram, domain.pods, 1)
  }
}
