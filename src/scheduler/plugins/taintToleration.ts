/** Refuses nodes with taints that the pod does not tolerate, and prefers those with fewer soft ones (L3). Upstream: plugins/tainttoleration. */
import type { Taint } from '#api/gen/types/core.v1'
import { findUntoleratedTaint, tolerationsTolerateTaint } from '#api/helpers/taints'
import type { Frozen } from '#api/machinery/meta'
import { normalizeByHighest, type SchedulerPlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

const keepsOut = (taint: Frozen<Taint>) => taint.effect === 'NoSchedule' || taint.effect === 'NoExecute'

export const taintToleration: SchedulerPlugin = {
  name: 'TaintToleration',
  filter: (_state, { pod }, { node }) => {
    const taint = findUntoleratedTaint(node?.spec?.taints, pod.spec.tolerations, keepsOut)
    return taint ? unresolvable(reasons.untoleratedTaint(taint.key, taint.value ?? '')) : undefined
  },
  score: (_state, { pod }, { node }) => {
    const soft = (pod.spec.tolerations ?? []).filter((toleration) => !toleration.effect || toleration.effect === 'PreferNoSchedule')
    return (node?.spec?.taints ?? []).filter((taint) => taint.effect === 'PreferNoSchedule' && !tolerationsTolerateTaint(soft, taint)).length
  },
  normalize: (scores) => normalizeByHighest(scores, true),
  requeueOn: (event, pod) => {
    if (event.type !== 'NodeAdd' && event.type !== 'NodeUpdate') return event.type === 'PodUpdate' && event.pod.metadata.uid === pod.metadata.uid
    return !findUntoleratedTaint(event.node.spec?.taints, pod.spec.tolerations, keepsOut)
  },
}
