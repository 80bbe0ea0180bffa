/** A pod that names a node goes there or nowhere (L3). Upstream: plugins/nodename. */
import { actions, on } from '../framework/clusterEvent.ts'
import { definePlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

const refused = unresolvable(reasons.nodeName)

export const nodeName = definePlugin('NodeName', () => ({
  requeueOn: [on('Node', actions.Add)],
  sign: ({ pod }) => pod.spec.nodeName ?? '',
  filter: (_state, { pod }, node) => (!pod.spec.nodeName || pod.spec.nodeName === node.name ? undefined : refused),
}))
