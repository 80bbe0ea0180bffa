/** nodeSelector and node affinity: where the pod must, and where it would like to run (L3). Upstream: plugins/nodeaffinity. */
import type { Pod } from '#api/gen/types/core.v1'
import { nodeSelectorTermMatches, podMatchesNodeSelectorAndAffinity } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import { normalizeByHighest, type SchedulerPlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

export const nodeAffinity: SchedulerPlugin = {
  name: 'NodeAffinity',
  preFilter: (_state, { pod }) => {
    const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
    if (!required && Object.keys(pod.spec.nodeSelector ?? {}).length === 0) return 'skip'
    const nodeNames = namedNodes(pod)
    return nodeNames ? { nodeNames } : undefined
  },
  filter: (_state, { pod }, { node }) => (node && podMatchesNodeSelectorAndAffinity(pod, node) ? undefined : unresolvable(reasons.nodeAffinity)),
  preScore: (_state, { pod }) => (preferredTerms(pod).length === 0 ? 'skip' : undefined),
  score: (_state, { pod }, { node }) => {
    let sum = 0
    for (const { weight, preference } of preferredTerms(pod)) if (node && weight !== 0 && nodeSelectorTermMatches(preference, node)) sum += weight
    return sum
  },
  normalize: (scores) => normalizeByHighest(scores, false),
  requeueOn: (event, pod) => {
    if (event.type === 'PodUpdate') return event.pod.metadata.uid === pod.metadata.uid
    return (event.type === 'NodeAdd' || event.type === 'NodeUpdate') && podMatchesNodeSelectorAndAffinity(pod, event.node)
  },
}

function preferredTerms(pod: Frozen<Pod>) {
  return pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
}

/** The only nodes that can match, when every term pins metadata.name (as DaemonSet pods do); undefined when some term does not. */
function namedNodes(pod: Frozen<Pod>): ReadonlySet<string> | undefined {
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  if (!terms || terms.length === 0) return undefined
  const names = new Set<string>()
  for (const term of terms) {
    const pinned = term.matchFields?.find((field) => field.key === 'metadata.name' && field.operator === 'In')
    if (!pinned) return undefined
    for (const name of pinned.values ?? []) names.add(name)
  }
  return names
}
