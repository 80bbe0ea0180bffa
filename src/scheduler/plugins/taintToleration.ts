/** Refuses nodes with taints that the pod does not tolerate, and prefers those with fewer soft ones (L3). Upstream: plugins/tainttoleration. */
import type { Taint, Toleration } from '#api/gen/types/core.v1'
import { findUntoleratedTaint, tolerationsTolerateTaint } from '#api/helpers/taints'
import type { Frozen } from '#api/machinery/meta'
import { actions, on } from '../framework/clusterEvent.ts'
import { type StateData, stateKey } from '../framework/cycleState.ts'
import { definePlugin, normalizeByHighest } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

const refused = unresolvable(reasons.untoleratedTaint)
const keepsOut = (taint: Frozen<Taint>) => taint.effect === 'NoSchedule' || taint.effect === 'NoExecute'

/** The tolerations that count for soft taints. */
interface Soft extends StateData {
  readonly tolerations: readonly Frozen<Toleration>[]
}
const key = stateKey<Soft>('TaintToleration')

export const taintToleration = definePlugin('TaintToleration', () => ({
  requeueOn: [
    on('Node', actions.Add | actions.UpdateNodeTaint, (pod, { old, object }) => {
      const tolerated = (taints: readonly Frozen<Taint>[] | undefined) => !findUntoleratedTaint(taints, pod.spec.tolerations, keepsOut)
      return tolerated(object?.spec?.taints) && !(old && tolerated(old.spec?.taints))
    }),
    on('TargetPod', actions.UpdatePodToleration),
  ],
  sign: ({ pod }) => tolerationsText(pod.spec.tolerations),
  filter: (_state, { pod }, { taints }) => {
    if (taints.length === 0) return undefined
    return findUntoleratedTaint(taints, pod.spec.tolerations, keepsOut) ? refused : undefined
  },
  preScore: (state, { pod }) => {
    const tolerations = (pod.spec.tolerations ?? []).filter((toleration) => !toleration.effect || toleration.effect === 'PreferNoSchedule')
    state.write(key, { tolerations })
    return undefined
  },
  score: (state, _pod, { taints }) => {
    if (taints.length === 0) return 0
    const soft = state.read(key)?.tolerations ?? []
    return taints.filter((taint) => taint.effect === 'PreferNoSchedule' && !tolerationsTolerateTaint(soft, taint)).length
  },
  normalize: (scores) => normalizeByHighest(scores, true),
}))

/** All that decides which taints are tolerated: for how long is no matter of the scheduler. */
function tolerationsText(tolerations: readonly Frozen<Toleration>[] | undefined): string {
  let text = ''
  for (const { key = '', operator = '', value = '', effect = '' } of tolerations ?? []) text += `${key}\n${operator}\n${value}\n${effect}\n`
  return text
}
