/** A pod that names a node goes there or nowhere (L3). Upstream: plugins/nodename. */
import type { SchedulerPlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

export const nodeName: SchedulerPlugin = {
  name: 'NodeName',
  filter: (_state, { pod }, node) => (!pod.spec.nodeName || pod.spec.nodeName === node.name ? undefined : unresolvable(reasons.nodeName)),
  requeueOn: (event) => event.type === 'NodeAdd',
}
