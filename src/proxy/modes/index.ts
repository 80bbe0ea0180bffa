/** The proxy modes, in the order in which one is chosen (L3). */
import { iptables } from './iptables.ts'
import type { ProxyMode } from './mode.ts'
import { nftables } from './nftables.ts'

export const proxyModes: readonly ProxyMode[] = [nftables, iptables]
