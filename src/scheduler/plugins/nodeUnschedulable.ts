/** Refuses cordoned nodes, unless the pod tolerates the taint that stands for it (L3). Upstream: plugins/nodeunschedulable. */
import { tolerationsTolerateTaint } from '#api/helpers/taints'
import type { SchedulerPlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

const taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

export const nodeUnschedulable: SchedulerPlugin = {
  name: 'NodeUnschedulable',
  filter: (_state, { pod }, { node }) => {
    if (!node?.spec?.unschedulable || tolerationsTolerateTaint(pod.spec.tolerations, taint)) return undefined
    return unresolvable(reasons.nodeUnschedulable)
  },
  requeueOn: (event) => event.type === 'NodeAdd' || (event.type === 'NodeUpdate' && Boolean(event.old.spec?.unschedulable) && !event.node.spec?.unschedulable),
}
