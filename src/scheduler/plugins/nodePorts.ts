/** Two pods cannot hold one host port (L3). Upstream: plugins/nodeports, framework HostPortInfo. */
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { SchedulerPlugin } from '../framework/plugin.ts'
import { reasons, unschedulable } from '../framework/status.ts'

const anyAddress = '0.0.0.0'

export const nodePorts: SchedulerPlugin = {
  name: 'NodePorts',
  preFilter: (_state, pod) => (pod.hostPorts.length === 0 ? 'skip' : undefined),
  filter: (_state, pod, node) => (pod.hostPorts.some((port) => isTaken(port, node)) ? unschedulable(reasons.nodePorts) : undefined),
  requeueOn: (event, pod) =>
    event.type === 'NodeAdd' || (event.type === 'PodDelete' && event.pod.spec.nodeName !== undefined && pod.metadata.uid !== event.pod.metadata.uid),
}

/** The wildcard address collides with every address on the same port and protocol. */
function isTaken(wanted: string, node: NodeInfo): boolean {
  const [protocol, address, port] = wanted.split('/')
  if (address !== anyAddress) return node.usedPorts.has(wanted) || node.usedPorts.has(`${protocol}/${anyAddress}/${port}`)
  for (const used of node.usedPorts.keys()) {
    const parts = used.split('/')
    if (parts[0] === protocol && parts[2] === port) return true
  }
  return false
}
