/** The proxy modes, in the order in which one is chosen (L3). */
import { iptables } from './iptables.ts'
import { ipvs } from './ipvs.ts'
import type { ProxyMode } from './mode.ts'
import { nftables } from './nftables.ts'
import { userspace } from './userspace.ts'

/** Those whose rules are in the kernel of every host with their programs. */
export const kernelModes: readonly ProxyMode[] = [nftables, iptables]

export const proxyModes: readonly ProxyMode[] = [...kernelModes, userspace, ipvs]
