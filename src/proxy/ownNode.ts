/** What a proxy needs of its own Node object (L3): whether it is being deleted, its zone, its addresses and the ranges of its pods. */
import type { Node } from '#api/gen/types/core.v1'
import { isIpv6, isLoopback, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import type { WakeUp } from '#base/wakeUp'
import type { ProxyHealth } from './health.ts'
import type { SyncTracker } from './syncTracker.ts'

export interface OwnNodeConfig {
  readonly nodeName: string
  readonly nodePortAddresses?: readonly string[] | undefined
  readonly primaryAddress?: string | undefined
}

interface OwnNodeDeps {
  readonly changes: WakeUp
  readonly tracker: Pick<SyncTracker, 'otherChanged'>
  readonly health: ProxyHealth
}

/** The value of nodePortAddresses for the addresses of the Node object. */
export const primaryAddresses = 'primary'
const zoneLabel = 'topology.kubernetes.io/zone'

/** Rings `changes` when something changes that rules are made of. */
export function followNode({ nodeName, nodePortAddresses = [], primaryAddress }: OwnNodeConfig, { changes, tracker, health }: OwnNodeDeps) {
  let zone: string | undefined
  let podCidrs: readonly string[] = []
  let addresses: readonly string[] = primaryOf(undefined, primaryAddress)
  const take = (node: Frozen<Node>) => {
    if (node.metadata.name !== nodeName) return
    health.setNode(node)
    const before = JSON.stringify([zone, podCidrs, addresses])
    zone = node.metadata.labels?.[zoneLabel]
    podCidrs = node.spec?.podCIDRs ?? []
    addresses = primaryOf(node, primaryAddress)
    if (JSON.stringify([zone, podCidrs, addresses]) === before) return
    tracker.otherChanged()
    changes.ring()
  }
  const isPrimary = nodePortAddresses.length === 1 && nodePortAddresses[0] === primaryAddresses
  return {
    handler: {
      onAdd: take,
      onUpdate: (_: unknown, node: Frozen<Node>) => take(node),
      onDelete: ({ metadata }: Frozen<Node>) => {
        if (metadata.name === nodeName) health.setNode(undefined)
      },
    },
    zone: () => zone,
    podCidrs: () => podCidrs,
    /** Undefined: every local address. */
    nodePortCidrs: (): readonly string[] | undefined => {
      if (isPrimary) return addresses.map((ip) => `${ip}/${isIpv6(ip) ? 128 : 32}`)
      return nodePortAddresses.length > 0 ? nodePortAddresses : undefined
    },
  }
}

/** The first address of each family, internal ones before external ones, as upstream's GetNodeHostIPs. Loopback addresses serve no node ports. */
function primaryOf(node: Frozen<Node> | undefined, override: string | undefined): readonly string[] {
  const listed = node?.status?.addresses ?? []
  const ofType = (wanted: string) => listed.filter(({ type }) => type === wanted).map(({ address }) => address)
  const candidates = [...(override === undefined ? [] : [override]), ...ofType('InternalIP'), ...ofType('ExternalIP')]
  return [false, true].flatMap((wantsIpv6) => {
    const found = candidates.find((address) => {
      const ip = parseIp(address)
      return ip !== undefined && !isLoopback(ip) && isIpv6(address) === wantsIpv6
    })
    return found === undefined ? [] : [found]
  })
}
