/** Two pods cannot hold one host port (L3). Upstream: plugins/nodeports, framework HostPortInfo. */
import { hostPortsOverlap } from '#api/helpers/hostPorts'
import { actions, on } from '../framework/clusterEvent.ts'
import { definePlugin } from '../framework/plugin.ts'
import { podInfo } from '../framework/podInfo.ts'
import { reasons, unschedulable } from '../framework/status.ts'

const refused = unschedulable(reasons.nodePorts)

export const nodePorts = definePlugin('NodePorts', () => ({
  requeueOn: [
    on('AssignedPod', actions.Delete, (pod, { old }) => {
      const freed = old ? new Map(podInfo(old).hostPorts.map((port) => [port, 1])) : new Map()
      return podInfo(pod).hostPorts.some((port) => isTaken(port, freed))
    }),
    on('Node', actions.Add),
  ],
  preFilter: (_state, pod) => (pod.hostPorts.length === 0 ? 'skip' : undefined),
  sign: (pod) => pod.hostPorts.join(),
  filter: (_state, pod, node) => (pod.hostPorts.some((port) => isTaken(port, node.usedPorts)) ? refused : undefined),
}))

function isTaken(wanted: string, usedPorts: ReadonlyMap<string, number>): boolean {
  if (usedPorts.has(wanted)) return true
  for (const used of usedPorts.keys()) if (hostPortsOverlap(wanted, used)) return true
  return false
}
