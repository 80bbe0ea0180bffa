/** Two pods cannot hold one host port (L3). Upstream: plugins/nodeports, framework HostPortInfo. */
import { actions, on } from '../framework/clusterEvent.ts'
import { definePlugin } from '../framework/plugin.ts'
import { podInfo } from '../framework/podInfo.ts'
import { reasons, unschedulable } from '../framework/status.ts'

const anyAddress = '0.0.0.0'
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
  filter: (_state, pod, node) => (pod.hostPorts.some((port) => isTaken(port, node.usedPorts)) ? refused : undefined),
}))

/** The wildcard address collides with every address on the same port and protocol. */
function isTaken(wanted: string, usedPorts: ReadonlyMap<string, number>): boolean {
  const [protocol, address, port] = parts(wanted)
  if (address !== anyAddress) return usedPorts.has(wanted) || usedPorts.has(`${protocol}/${anyAddress}/${port}`)
  for (const used of usedPorts.keys()) {
    const [usedProtocol, , usedPort] = parts(used)
    if (usedProtocol === protocol && usedPort === port) return true
  }
  return false
}

function parts(port: string): string[] {
  return port.split('/')
}
