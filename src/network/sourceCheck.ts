/**
 * Drops packets that a pod sends with an address other than its own (L3), pure: network policies and Services know a pod by its address, and a container may
 * write packets of any content (CAP_NET_RAW is one of the runtime's defaults). Each pod has a link of its own, and the routes of the kernel tell its addresses.
 */
import type { TableContents } from '#host/nftables'

export const sourceCheckTable = 'skiff-source-check'

/** An IPv6 address is not set while the pod asks whether another machine has it. */
export const sourceCheck: TableContents = {
  frame: `
	chain prerouting {
		type filter hook prerouting priority -300; policy accept;
		iifname != "veth*" return
		ip6 saddr :: return
		fib saddr . iif oif missing counter drop
	}
`,
  chains: new Map(),
  sets: new Map(),
  maps: new Map(),
}
