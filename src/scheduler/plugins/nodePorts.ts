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

/** Of ports as `TCP/0.0.0.0/8080`: the wildcard address collides with every address on the same port and protocol. */
export function hostPortsOverlap(a: string, b: string): boolean {
  const [protocol, address, port] = a.split('/')
  const [otherProtocol, otherAddress, otherPort] = b.split('/')
  if (protocol !== otherProtocol || port !== otherPort) return false
  return address === otherAddress || address === anyAddress || otherAddress === anyAddress
}

function isTaken(wanted: string, usedPorts: ReadonlyMap<string, number>): boolean {
  if (usedPorts.has(wanted)) return true
  for (const used of usedPorts.keys()) if (hostPortsOverlap(wanted, used)) return true
  return false
}
