/** The ports of its node that a pod takes (L1), and who is in whose way. Upstream: kube-scheduler framework HostPortInfo, scheduler/util GetHostPorts (v1.36). */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

const anyAddress = '0.0.0.0'
const none: readonly never[] = []

/** As `TCP/0.0.0.0/8080`, of containers and sidecars. */
export function hostPortsOf(pod: Frozen<Pod>): readonly string[] {
  let found: string[] | undefined
  const look = (container: Frozen<Pod>['spec']['containers'][number]) => {
    for (const { hostPort, hostIP, protocol } of container.ports ?? none) {
      if (!hostPort) continue
      found ??= []
      found.push(`${protocol ?? 'TCP'}/${hostIP || anyAddress}/${hostPort}`)
    }
  }
  for (const container of pod.spec.containers) look(container)
  for (const container of pod.spec.initContainers ?? none) if (container.restartPolicy === 'Always') look(container)
  return found ?? none
}

/** The wildcard address collides with every address on the same port and protocol. */
export function hostPortsOverlap(a: string, b: string): boolean {
  const [protocol, address, port] = a.split('/')
  const [otherProtocol, otherAddress, otherPort] = b.split('/')
  if (protocol !== otherProtocol || port !== otherPort) return false
  return address === otherAddress || address === anyAddress || otherAddress === anyAddress
}
