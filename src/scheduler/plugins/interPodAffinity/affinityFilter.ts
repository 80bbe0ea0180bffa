/**
 * Whether a pod may go to a node as far as its company is concerned (L3): what it wants near, what it wants away, and who wants it away; with the
 * placements that preemption only tries counted on top. Upstream: plugins/interpodaffinity/filtering.go (v1.36).
 */
import { ownValue } from '#base/bareMap'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import { affinityTermMatches, type PodInfo } from '../../framework/podInfo.ts'
import { type FilterResult, reasons, unresolvable, unschedulable } from '../../framework/status.ts'
import type { DomainTable } from '../topology/domainTable.ts'
import type { HeldTerm } from '../topology/heldTerms.ts'
import type { TriesPods } from '../topology/tryPods.ts'

/** State that is the same for all nodes. */
export interface AffinityQuestion {
  readonly pod: PodInfo
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined
  /** By topology of the required affinity terms, and by that of the required anti-affinity terms. */
  readonly near: readonly DomainTable[]
  readonly away: readonly DomainTable[]
  /** Whether the pod matches its own affinity terms: the first such pod may go to any node. */
  readonly wantsItself: boolean
  /** Anti-affinity of placed pods that is about this pod. */
  readonly held: readonly HeldTerm[]
}

/** The held terms that the check of the pod's own anti-affinity does not cover: `away` has counted the pods of the terms that the pod holds itself. */
function heldByOthers({ pod, held }: AffinityQuestion): readonly HeldTerm[] {
  if (held.length === 0) return held
  const own = new Set(pod.requiredAntiAffinity.map(({ text }) => text))
  return held.filter(({ term, isMutual }) => !isMutual || !own.has(term.text))
}

type Changes = Map<string, number>

/** Deviations from the tables, domain by domain. */
interface Tried {
  readonly near: readonly Changes[]
  readonly away: readonly Changes[]
  /** By topology key. */
  readonly held: Map<string, Changes>
}

export class AffinityFilter implements TriesPods {
  readonly #question: AffinityQuestion
  readonly #heldByOthers: readonly HeldTerm[]
  #tried: Tried | undefined

  constructor(question: AffinityQuestion, tried?: Tried) {
    this.#question = question
    this.#heldByOthers = heldByOthers(question)
    this.#tried = tried
  }

  clone(): AffinityFilter {
    const tried = this.#tried
    if (!tried) return new AffinityFilter(this.#question)
    const copy = (changes: Changes) => new Map(changes)
    const held = new Map([...tried.held].map(([key, changes]) => [key, copy(changes)]))
    return new AffinityFilter(this.#question, { near: tried.near.map(copy), away: tried.away.map(copy), held })
  }

  tryPod(tried: PodInfo, { node }: NodeInfo, by: 1 | -1): void {
    const { pod, namespaceLabels, near, away } = this.#question
    this.#tried ??= { near: near.map(() => new Map()), away: away.map(() => new Map()), held: new Map() }
    const { labels } = node.metadata
    const count = (changes: Changes, topologyKey: string) => {
      const value = ownValue(labels, topologyKey)
      if (value !== undefined) changes.set(value, (changes.get(value) ?? 0) + by)
    }
    for (const [i, { shape }] of near.entries()) if (shape.counts(tried)) count(this.#tried.near[i] as Changes, shape.topologyKey)
    for (const [i, { shape }] of away.entries()) if (shape.counts(tried)) count(this.#tried.away[i] as Changes, shape.topologyKey)
    for (const term of tried.requiredAntiAffinity) {
      if (!affinityTermMatches(term, pod.pod, namespaceLabels)) continue
      const { held } = this.#tried
      const changes = held.get(term.topologyKey) ?? new Map<string, number>()
      held.set(term.topologyKey, changes)
      count(changes, term.topologyKey)
    }
  }

  filter(node: NodeInfo): FilterResult {
    if (!this.#isNear(node)) return notNear
    if (!this.#isAway(node)) return notAway
    return this.#isUnwanted(node) ? unwanted : undefined
  }

  #isNear(node: NodeInfo): boolean {
    const { near, wantsItself } = this.#question
    let all = true
    for (let i = 0; i < near.length; i++) {
      const table = near[i] as DomainTable
      const around = table.around(node)
      if (around === undefined) return false
      if (around + triedAround(this.#tried?.near[i], table, node) <= 0) all = false
    }
    return all || (wantsItself && near.every((table, i) => table.total + sum(this.#tried?.near[i]) === 0))
  }

  #isAway(node: NodeInfo): boolean {
    const { away } = this.#question
    for (let i = 0; i < away.length; i++) {
      const table = away[i] as DomainTable
      const around = table.around(node)
      if (around !== undefined && around + triedAround(this.#tried?.away[i], table, node) > 0) return false
    }
    return true
  }

  #isUnwanted({ node }: NodeInfo): boolean {
    const { held } = this.#question
    if (!this.#tried) {
      for (const { term, domains } of this.#heldByOthers) {
        const value = ownValue(node.metadata.labels, term.topologyKey)
        if (value !== undefined && domains.has(value)) return true
      }
      return false
    }
    const keys = new Set([...held.map(({ term }) => term.topologyKey), ...this.#tried.held.keys()])
    for (const key of keys) {
      const value = ownValue(node.metadata.labels, key)
      if (value === undefined) continue
      let pods = this.#tried.held.get(key)?.get(value) ?? 0
      for (const { term, domains } of held) if (term.topologyKey === key) pods += domains.get(value) ?? 0
      if (pods > 0) return true
    }
    return false
  }
}

function triedAround(changes: Changes | undefined, { shape }: DomainTable, { node }: NodeInfo): number {
  return changes?.get(ownValue(node.metadata.labels, shape.topologyKey) ?? '') ?? 0
}

function sum(changes: Changes | undefined): number {
  let total = 0
  for (const by of changes?.values() ?? []) total += by
  return total
}

const notNear = unresolvable(reasons.podAffinity)
const notAway = unschedulable(reasons.podAntiAffinity)
const unwanted = unschedulable(reasons.existingAntiAffinity)
