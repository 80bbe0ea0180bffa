/**
 * The affinity terms of the pod to be placed, with the tables that count the placed pods they are about (L3). A term that selects namespaces by
 * their labels means those that it selects now. Upstream: plugins/interpodaffinity/plugin.go mergeAffinityTermNamespacesIfNotEmpty (v1.36).
 */
import type { Namespace, Pod } from '#api/gen/types/core.v1'
import { nothing } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import type { Lister } from '#client/cache/lister'
import { type AffinityTerm, affinityTerm, affinityTermMatches, type PodInfo } from '../../framework/podInfo.ts'
import type { Snapshot } from '../../framework/snapshot.ts'
import type { DomainTable } from '../topology/domainTable.ts'
import type { DomainTables } from '../topology/domainTables.ts'

export class IncomingTerms {
  readonly #tables: DomainTables
  readonly #namespaces: Lister<Namespace>

  constructor(tables: DomainTables, namespaces: Lister<Namespace>) {
    this.#tables = tables
    this.#namespaces = namespaces
  }

  labelsOfNamespace(name: string | undefined): Readonly<Record<string, string>> | undefined {
    return name === undefined ? undefined : this.#namespaces.get({ name })?.metadata.labels
  }

  /** For each term, a table of the pods that it alone is about. */
  each(terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable[] {
    return terms.map((term) => this.#table(term.topologyKey, [this.#resolved(term)], snapshot))
  }

  /** For each term's topology, a table of the pods that all of them are about. */
  together(terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable[] {
    const resolved = terms.map((term) => this.#resolved(term))
    return terms.map(({ topologyKey }) => this.#table(topologyKey, resolved, snapshot))
  }

  #resolved(term: AffinityTerm): AffinityTerm {
    if (term.namespaceSelector === nothing) return term
    const selected = this.#namespaces.list({ matches: ({ metadata }) => term.namespaceSelector.matches(metadata.labels) })
    const namespaces = new Set([...term.namespaces, ...selected.map(({ metadata }) => metadata.name ?? '')])
    return affinityTerm({ ...term, namespaces, namespaceSelector: nothing })
  }

  #table(topologyKey: string, terms: readonly AffinityTerm[], snapshot: Snapshot): DomainTable {
    const key = `${topologyKey} ${terms.map(({ text }) => text).join()}`
    return this.#tables.get(key, snapshot, () => ({ topologyKey, counts: (info: PodInfo) => matchesAll(terms, info.pod, undefined) }))
  }
}

/** Whether all the terms are about the pod; no terms are about none. */
export function matchesAll(terms: readonly AffinityTerm[], pod: Frozen<Pod>, namespaceLabels: Readonly<Record<string, string>> | undefined): boolean {
  if (terms.length === 0) return false
  for (const term of terms) if (!affinityTermMatches(term, pod, namespaceLabels)) return false
  return true
}
