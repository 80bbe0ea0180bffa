/**
 * The affinity terms that placed pods have, each once however many pods have it, with how many of them run in each domain of its topology (L3).
 * A cycle asks each distinct term whether it is about the incoming pod, not each pod.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { type LabelMap, nothing } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { countIn, type NodeInfo } from '../../framework/nodeInfo.ts'
import { type AffinityTerm, affinityTermMatches, hasSameTerms, type PodInfo, sameLabels } from '../../framework/podInfo.ts'
import type { PlacementIndex } from '../../framework/snapshot.ts'

export interface HeldTerm {
  readonly term: AffinityTerm
  readonly weight: number
  /** Domain → how many pods with this term run there. */
  readonly domains: ReadonlyMap<string, number>
  /** Each of those pods is one that the term is about: they keep away from each other. */
  readonly isMutual: boolean
}

export type WeightedTerm = readonly [AffinityTerm, number]

class Entry implements HeldTerm {
  readonly term: AffinityTerm
  readonly weight: number
  readonly domains = new Map<string, number>()
  /** Node → its pods with this term, and the domain in which they are counted. */
  readonly nodes = new Map<string, { pods: number; domain: string | undefined }>()
  /** Pods with this term that it is not about. */
  others = 0

  constructor(term: AffinityTerm, weight: number) {
    this.term = term
    this.weight = weight
  }

  get isMutual(): boolean {
    return this.others === 0
  }

  isOther({ pod }: PodInfo): boolean {
    // Labels of namespaces change while the pod stays counted as what it was.
    return this.term.namespaceSelector !== nothing || !affinityTermMatches(this.term, pod, undefined)
  }
}

export class HeldTerms implements PlacementIndex {
  readonly #entries = new Map<string, Entry>()
  readonly #termsOf: (pod: PodInfo) => Iterable<WeightedTerm>

  constructor(termsOf: (pod: PodInfo) => Iterable<WeightedTerm>) {
    this.#termsOf = termsOf
  }

  /** The terms that are about the pod and are held somewhere in their topology. */
  about(pod: Frozen<Pod>, namespaceLabels: LabelMap | undefined): HeldTerm[] {
    const found: HeldTerm[] = []
    for (const entry of this.#entries.values()) {
      if (entry.domains.size > 0 && affinityTermMatches(entry.term, pod, namespaceLabels)) found.push(entry)
    }
    return found
  }

  podAdded(pod: PodInfo, node: NodeInfo): void {
    for (const [term, weight] of this.#termsOf(pod)) {
      const key = `${weight} ${term.text}`
      let entry = this.#entries.get(key)
      if (!entry) {
        entry = new Entry(term, weight)
        this.#entries.set(key, entry)
      }
      let there = entry.nodes.get(node.name)
      if (!there) {
        there = { pods: 0, domain: domainOf(term, node.node) }
        entry.nodes.set(node.name, there)
      }
      there.pods++
      if (entry.isOther(pod)) entry.others++
      if (there.domain !== undefined) countIn(entry.domains, there.domain, 1)
    }
  }

  podRemoved(pod: PodInfo, node: NodeInfo): void {
    for (const [term, weight] of this.#termsOf(pod)) {
      const key = `${weight} ${term.text}`
      const entry = this.#entries.get(key)
      const there = entry?.nodes.get(node.name)
      if (!entry || !there) continue
      if (entry.isOther(pod)) entry.others--
      if (there.domain !== undefined) countIn(entry.domains, there.domain, -1)
      if (--there.pods > 0) continue
      entry.nodes.delete(node.name)
      if (entry.nodes.size === 0) this.#entries.delete(key)
    }
  }

  /** A pod may hold tens of thousands of terms: with the same ones, its labels decide only which of them are about itself. */
  podChanged(before: PodInfo, pod: PodInfo, node: NodeInfo): void {
    if (!hasSameTerms(before, pod)) {
      this.podRemoved(before, node)
      this.podAdded(pod, node)
    } else if (!sameLabels(before.pod.metadata.labels, pod.pod.metadata.labels)) {
      for (const [term, weight] of this.#termsOf(pod)) {
        const entry = this.#entries.get(`${weight} ${term.text}`)
        if (entry) entry.others += Number(entry.isOther(pod)) - Number(entry.isOther(before))
      }
    }
  }

  nodeSet(node: NodeInfo): void {
    for (const entry of this.#entries.values()) this.#move(entry, node.name, domainOf(entry.term, node.node))
  }

  nodeRemoved(node: NodeInfo): void {
    for (const entry of this.#entries.values()) this.#move(entry, node.name, undefined)
  }

  #move(entry: Entry, nodeName: string, domain: string | undefined): void {
    const there = entry.nodes.get(nodeName)
    if (!there || there.domain === domain) return
    if (there.domain !== undefined) countIn(entry.domains, there.domain, -there.pods)
    there.domain = domain
    if (domain !== undefined) countIn(entry.domains, domain, there.pods)
  }
}

function domainOf(term: AffinityTerm, node: Frozen<Node>): string | undefined {
  return ownValue(node.metadata.labels, term.topologyKey)
}
