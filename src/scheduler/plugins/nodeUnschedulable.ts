/** Refuses cordoned nodes, unless the pod tolerates the taint that stands for it (L3). Upstream: plugins/nodeunschedulable. */
import { tolerationsTolerateTaint } from '#api/helpers/taints'
import { actions, on } from '../framework/clusterEvent.ts'
import { definePlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

const taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
const refused = unresolvable(reasons.nodeUnschedulable)

export const nodeUnschedulable = definePlugin('NodeUnschedulable', () => ({
  requeueOn: [
    on('Node', actions.Add | actions.UpdateNodeTaint, (_pod, { old, object }) => {
      if (!old) return object?.spec?.unschedulable !== true
      return old.spec?.unschedulable === true && object?.spec?.unschedulable !== true
    }),
    on('TargetPod', actions.UpdatePodToleration, (_pod, { object }) => tolerationsTolerateTaint(object?.spec.tolerations, taint)),
  ],
  sign: ({ pod }) => (tolerationsTolerateTaint(pod.spec.tolerations, taint) ? 'tolerated' : ''),
  filter: (_state, { pod }, node) => (!node.unschedulable || tolerationsTolerateTaint(pod.spec.tolerations, taint) ? undefined : refused),
}))
