/**
 * The affinity terms of the pod to be placed, with the tables that count the placed pods they are about (L3). A term that selects namespaces by
 * their labels means those that it selects now. Upstream: plugins/interpodaffinity/plugin.go mergeAffinityTermNamespacesIfNotEmpty (v1.36).
 */
import type { Namespace, Pod } from '#api/gen/types/core.v1'
import { nothing } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { LruCache } from '#base/lruCache'
import type { Lister } from '#client/cache/lister'
import { type AffinityTerm, affinityTerm, affinityTermMatches, type PodInfo } from '../../framework/podInfo.ts'
import type { Snapshot } from '../../framework/snapshot.ts'
import type { DomainTable } from '../topology/domainTable.ts'
import type { DomainTables } from '../topology/domainTables.ts'

/** Characters from which a table is found by a name that stands for its terms. */
const longText = 2000
/** How many such names are known: each keeps a text of up to a megabyte. */
const mostLong = 16

/** With more terms it pays to ask first which topologies there are. */
const fewTerms = 100

export class IncomingTerms {
  readonly #tables: DomainTables
  readonly #namespaces: Lister<Namespace>
  readonly #long = new LruCache<string, { readonly name: string }>(mostLong)
  #counted = 0

  constructor(tables: DomainTables, namespaces: Lister<Namespace>) {
    this.#tables = tables
    this.#namespaces = namespaces
  }

  labelsOfNamespace(name: string | undefined): Readonly<Record<string, string>> | undefined {
    return name === undefined ? undefined : this.#namespaces.get({ name })?.metadata.labels
  }

  /** For each term, a table of the pods that it alone is about. */
  each(terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable[] {
    return terms.map((term) => {
      const resolved = this.#resolved(term)
      return this.#table(`${term.topologyKey} ${this.#nameOf(resolved.text)}`, term.topologyKey, [resolved], snapshot)
    })
  }

  /** For each topology of the terms, a table of the pods that all terms are about. Of many topologies one that no node has is enough: it refuses every node. */
  together(terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable[] {
    const present = terms.length > fewTerms ? labelsOf(snapshot) : undefined
    const absent = present && terms.find(({ topologyKey }) => !present.has(topologyKey))
    if (absent) return this.each([absent], snapshot)
    const distinct = new Map<string, AffinityTerm>()
    const topologyKeys = new Set<string>()
    for (const term of terms) {
      const resolved = this.#resolved(term)
      distinct.set(resolved.text, resolved)
      topologyKeys.add(term.topologyKey)
    }
    const name = this.#nameOf([...distinct.keys()].join())
    const all = [...distinct.values()]
    return [...topologyKeys].map((topologyKey) => this.#table(`${topologyKey} ${name}`, topologyKey, all, snapshot))
  }

  /** For each topology of the terms that a node has, a table of the pods that any term of that topology is about. */
  any(terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable[] {
    const present = terms.length > fewTerms ? labelsOf(snapshot) : undefined
    const ofTopology = new Map<string, AffinityTerm[]>()
    for (const term of terms) {
      if (present?.has(term.topologyKey) === false) continue
      const some = ofTopology.get(term.topologyKey) ?? []
      ofTopology.set(term.topologyKey, some)
      some.push(this.#resolved(term))
    }
    return [...ofTopology].map(([topologyKey, some]) => {
      const name = this.#nameOf(some.map(({ text }) => text).join())
      const counts = ({ pod }: PodInfo) => some.some((term) => affinityTermMatches(term, pod, undefined))
      return this.#tables.get(`any ${topologyKey} ${name}`, snapshot, () => ({ topologyKey, counts }))
    })
  }

  /** The text, or a short name for a long one: a text may be as long as the pod, and each table is found by it. */
  #nameOf(text: string): string {
    if (text.length <= longText) return text
    const known = this.#long.get(text) ?? { name: `long ${this.#counted++}` }
    this.#long.set(text, known)
    return known.name
  }

  #resolved(term: AffinityTerm): AffinityTerm {
    if (term.namespaceSelector === nothing) return term
    const selected = this.#namespaces.list({ matches: ({ metadata }) => term.namespaceSelector.matches(metadata.labels) })
    const namespaces = new Set([...term.namespaces, ...selected.map(({ metadata }) => metadata.name ?? '')])
    return affinityTerm({ ...term, namespaces, namespaceSelector: nothing })
  }

  #table(key: string, topologyKey: string, terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable {
    return this.#tables.get(key, snapshot, () => ({ topologyKey, counts: (info: PodInfo) => matchesAll(terms, info.pod, undefined) }))
  }
}

/** The names of all labels that nodes have. */
function labelsOf(snapshot: Snapshot): Set<string> {
  const names = new Set<string>()
  for (const { node } of snapshot.nodes) for (const name in node.metadata.labels) names.add(name)
  return names
}

/** Whether all the terms are about the pod; no terms are about none. */
export function matchesAll(terms: readonly AffinityTerm[], pod: Frozen<Pod>, namespaceLabels: Readonly<Record<string, string>> | undefined): boolean {
  if (terms.length === 0) return false
  for (const term of terms) if (!affinityTermMatches(term, pod, namespaceLabels)) return false
  return true
}
