/**
 * Keeps pods near to, or away from, other pods (L3): as they require, and as far as possible as they prefer. What a pod requires or prefers counts
 * for those that come later, too. Upstream: plugins/interpodaffinity (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { namespaces } from '#client/builtIn'
import { actions, type ClusterEvent, on } from '../../framework/clusterEvent.ts'
import { type StateData, stateKey } from '../../framework/cycleState.ts'
import { definePlugin, maxNodeScore } from '../../framework/plugin.ts'
import { type PodInfo, podInfo } from '../../framework/podInfo.ts'
import { DomainTables } from '../topology/domainTables.ts'
import { HeldTerms, type WeightedTerm } from '../topology/heldTerms.ts'
import { tryPods } from '../topology/tryPods.ts'
import { AffinityFilter } from './affinityFilter.ts'
import { IncomingTerms, matchesAll } from './incomingTerms.ts'

/** What pods of a domain add to the score of its nodes. */
interface Contribution {
  readonly topologyKey: string
  readonly weight: number
  inDomain(value: string): number
}

interface Contributions extends StateData {
  readonly all: readonly Contribution[]
  clone(): Contributions
}

const filterKey = stateKey<AffinityFilter>('PreFilterInterPodAffinity')
const scoreKey = stateKey<Contributions>('PreScoreInterPodAffinity')

export const interPodAffinity = definePlugin('InterPodAffinity', ({ hardPodAffinityWeight, ignorePreferredTermsOfExistingPods }, handle) => {
  const tables = new DomainTables()
  const antiAffinity = new HeldTerms(({ requiredAntiAffinity: terms }) => (terms.length === 0 ? noTerms : terms.map((term): WeightedTerm => [term, 1])))
  const preferences = new HeldTerms((pod) => scoringTerms(pod, hardPodAffinityWeight))
  const incoming = new IncomingTerms(tables, handle.lister(namespaces))
  for (const index of [tables, antiAffinity, preferences]) handle.maintain(index)

  return {
    requeueOn: [
      on('AssignedPod', actions.Add | actions.UpdatePodLabel | actions.Delete, (pod, event) =>
        changesCompany(podInfo(pod), event, (name) => incoming.labelsOfNamespace(name)),
      ),
      on('TargetPod', actions.UpdatePodLabel),
      on('Node', actions.Add | actions.UpdateNodeLabel, (pod, { old, object }) => changesDomains(podInfo(pod), old, object)),
    ],
    batchSign: ({ pod: { metadata, spec } }) => {
      if (spec.affinity?.podAffinity || spec.affinity?.podAntiAffinity) return undefined
      return ignorePreferredTermsOfExistingPods ? '' : JSON.stringify(Object.entries(metadata.labels ?? {}).sort())
    },
    preFilter: (state, pod, snapshot) => {
      const namespaceLabels = incoming.labelsOfNamespace(pod.pod.metadata.namespace)
      const held = antiAffinity.about(pod.pod, namespaceLabels)
      const { requiredAffinity, requiredAntiAffinity } = pod
      if (held.length === 0 && requiredAffinity.length === 0 && requiredAntiAffinity.length === 0) return 'skip'
      const wantsItself = matchesAll(requiredAffinity, pod.pod, namespaceLabels)
      const near = incoming.together(requiredAffinity, snapshot)
      const away = incoming.any(requiredAntiAffinity, snapshot)
      state.write(filterKey, new AffinityFilter({ pod, namespaceLabels, near, away, wantsItself, held }))
      return undefined
    },
    ...tryPods(filterKey),
    filter: (state, _pod, node) => state.read(filterKey)?.filter(node),
    preScore: (state, pod, _nodes, snapshot) => {
      const own: Contribution[] = []
      const add = (terms: PodInfo['preferredAffinity'], sign: 1 | -1) => {
        for (const [i, table] of incoming.each(terms, snapshot).entries()) {
          const { weight, topologyKey } = terms[i] as PodInfo['preferredAffinity'][number]
          if (table.total > 0) own.push({ topologyKey, weight: sign * weight, inDomain: (value) => table.inDomain(value) })
        }
      }
      add(pod.preferredAffinity, 1)
      add(pod.preferredAntiAffinity, -1)
      const hasPreferences = pod.preferredAffinity.length > 0 || pod.preferredAntiAffinity.length > 0
      if (ignorePreferredTermsOfExistingPods && !hasPreferences) return 'skip'
      for (const { term, weight, domains } of preferences.about(pod.pod, incoming.labelsOfNamespace(pod.pod.metadata.namespace)))
        own.push({ topologyKey: term.topologyKey, weight, inDomain: (value) => domains.get(value) ?? 0 })
      if (own.length === 0) return 'skip'
      const contributions: Contributions = { all: own, clone: () => contributions }
      state.write(scoreKey, contributions)
      return undefined
    },
    score: (state, _pod, { node }) => {
      let score = 0
      for (const { topologyKey, weight, inDomain } of state.read(scoreKey)?.all ?? []) {
        const value = ownValue(node.metadata.labels, topologyKey)
        if (value !== undefined) score += weight * inDomain(value)
      }
      return score
    },
    normalize: normalizeByRange,
  }
})

/** What a placed pod prefers about others, and, a little, what it requires. */
function scoringTerms({ requiredAffinity, preferredAffinity, preferredAntiAffinity }: PodInfo, hardWeight: number): readonly WeightedTerm[] {
  if (requiredAffinity.length === 0 && preferredAffinity.length === 0 && preferredAntiAffinity.length === 0) return noTerms
  return [
    ...(hardWeight > 0 ? requiredAffinity : []).map((term): WeightedTerm => [term, hardWeight]),
    ...preferredAffinity.map((term): WeightedTerm => [term, term.weight]),
    ...preferredAntiAffinity.map((term): WeightedTerm => [term, -term.weight]),
  ]
}

const noTerms: readonly WeightedTerm[] = []

/** The lowest becomes 0, the highest 100. */
function normalizeByRange(scores: number[]): void {
  let lowest = Number.POSITIVE_INFINITY
  let highest = Number.NEGATIVE_INFINITY
  for (const score of scores) {
    if (score < lowest) lowest = score
    if (score > highest) highest = score
  }
  const range = highest - lowest
  for (let i = 0; i < scores.length; i++) scores[i] = range > 0 ? Math.trunc(maxNodeScore * (((scores[i] as number) - lowest) / range)) : 0
}

/** Whether a pod was added that matches the affinity, or one was removed that matches the anti-affinity. */
function changesCompany(
  pod: PodInfo,
  { old, object }: ClusterEvent<'AssignedPod'>,
  labelsOf: (namespace: string | undefined) => Readonly<Record<string, string>> | undefined,
): boolean {
  const labels = labelsOf((object ?? old)?.metadata.namespace)
  const about = (terms: PodInfo['requiredAffinity'], other: Frozen<Pod> | undefined) => other !== undefined && matchesAll(terms, other, labels)
  if (!about(pod.requiredAffinity, old) && about(pod.requiredAffinity, object)) return true
  if (about(pod.requiredAntiAffinity, old) && !about(pod.requiredAntiAffinity, object)) return true
  if (!old || object) return false
  const own = labelsOf(pod.pod.metadata.namespace)
  return pod.requiredAntiAffinity.some((term) => about([term], old)) || podInfo(old).requiredAntiAffinity.some((term) => matchesAll([term], pod.pod, own))
}

/** Whether a node joined a domain that matters to the pod, or left one. A pod that other pods' rules refuse is notified of every change. */
function changesDomains({ requiredAffinity, requiredAntiAffinity }: PodInfo, old: Frozen<Node> | undefined, node: Frozen<Node> | undefined): boolean {
  const terms = [...requiredAffinity, ...requiredAntiAffinity]
  if (terms.length === 0) return true
  if (!old) return requiredAffinity.every(({ topologyKey }) => ownValue(node?.metadata.labels, topologyKey) !== undefined)
  return terms.some(({ topologyKey }) => ownValue(old.metadata.labels, topologyKey) !== ownValue(node?.metadata.labels, topologyKey))
}
