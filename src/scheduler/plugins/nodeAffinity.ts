/** nodeSelector and node affinity: where the pod must, and where it would like to run (L3). Upstream: plugins/nodeaffinity. */
import type { Pod } from '#api/gen/types/core.v1'
import { nodeSelectorMatches, nodeSelectorTermMatches, podMatchesNodeSelectorAndAffinity } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import { actions, on } from '../framework/clusterEvent.ts'
import { definePlugin, normalizeByHighest } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

export const nodeAffinity = definePlugin('NodeAffinity', ({ addedAffinity }) => {
  const addedRequired = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const addedPreferred = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const preferred = (pod: Frozen<Pod>) => [...addedPreferred, ...(pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])]
  return {
    requeueOn: [
      on('Node', actions.Add | actions.UpdateNodeLabel, (pod, { old, object }) => {
        if (!object || (addedRequired && !nodeSelectorMatches(addedRequired, object))) return false
        return podMatchesNodeSelectorAndAffinity(pod, object) && !(old && podMatchesNodeSelectorAndAffinity(pod, old) && !addedRequired)
      }),
    ],
    preFilter: (_state, { pod }) => {
      const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
      if (!addedRequired && !required && Object.keys(pod.spec.nodeSelector ?? {}).length === 0) return 'skip'
      const nodeNames = namedNodes(pod)
      if (nodeNames?.size === 0) return unresolvable(reasons.nodeAffinityConflict)
      return nodeNames ? { nodeNames } : undefined
    },
    sign: ({ pod: { spec } }) => JSON.stringify([spec.nodeSelector, spec.affinity?.nodeAffinity]),
    filter: (_state, { pod }, { node }) => {
      if (addedRequired && !nodeSelectorMatches(addedRequired, node)) return enforced
      return podMatchesNodeSelectorAndAffinity(pod, node) ? undefined : refused
    },
    preScore: (_state, { pod }) => (preferred(pod).length === 0 ? 'skip' : undefined),
    score: (_state, { pod }, { node }) => {
      let sum = 0
      for (const { weight, preference } of preferred(pod)) if (weight !== 0 && nodeSelectorTermMatches(preference, node)) sum += weight
      return sum
    },
    normalize: (scores) => normalizeByHighest(scores, false),
  }
})

const refused = unresolvable(reasons.nodeAffinity)
const enforced = unresolvable(reasons.enforcedNodeAffinity)

/** The only nodes that can match, when every term pins metadata.name (as DaemonSet pods do); undefined when some term does not. */
function namedNodes(pod: Frozen<Pod>): ReadonlySet<string> | undefined {
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  if (!terms || terms.length === 0) return undefined
  const names = new Set<string>()
  for (const term of terms) {
    let pinned: readonly string[] | undefined
    for (const { key, operator, values } of term.matchFields ?? []) {
      if (key !== 'metadata.name' || operator !== 'In') continue
      const before: readonly string[] | undefined = pinned
      pinned = before ? before.filter((name) => values?.includes(name)) : values
    }
    if (!pinned) return undefined
    for (const name of pinned) names.add(name)
  }
  return names
}
