/**
 * Decides which connections of a node's pods get the node's address (L3), pure: those that leave the cluster, also to the API server's address on the host,
 * because only the nodes of the cluster have routes back to pods. Pods and nodes see the pods' own addresses. Upstream's counterpart: kindnet's and the ip-masq-agent's
 * masquerade rules.
 */
import type { Node } from '#api/gen/types/core.v1'
import { isIpv6 } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import type { TableContents } from '#host/nftables'
import { addressFor, isSimulated, podCidrsOf } from './podNetwork.ts'

export interface FamilyMasquerade {
  readonly family: 'ip' | 'ip6'
  readonly contents: TableContents
}

const syntaxes = { ip: 'ipv4_addr', ip6: 'ipv6_addr' } as const

/** One entry for each family in which the node has pods. @param clusterCidrs the ranges of all pods */
export function masqueradeOf(own: Frozen<Node>, nodes: readonly Frozen<Node>[], clusterCidrs: readonly string[]): FamilyMasquerade[] {
  return podCidrsOf(own).map((podCidr) => {
    const family = isIpv6(podCidr) ? 'ip6' : 'ip'
    const ofFamily = clusterCidrs.filter((cidr) => isIpv6(cidr) === isIpv6(podCidr))
    const addresses = nodes.filter((node) => !isSimulated(node)).flatMap((node) => addressFor(node, podCidr) ?? [])
    const frame = `
	set nodes { type ${syntaxes[family]}; }
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		${family} saddr != ${podCidr} return
		${ofFamily.map((cidr) => `${family} daddr ${cidr} return`).join('\n\t\t')}
		${family} daddr @nodes return
		masquerade fully-random
	}
`
    return { family, contents: { frame, chains: new Map(), sets: new Map(), maps: new Map([['nodes', new Map(addresses.map((address) => [address, '']))]]) } }
  })
}
