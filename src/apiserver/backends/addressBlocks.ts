/** Blocks of IP addresses (L3): every spelling of an address counts, and so does an IPv4 address that IPv6 maps. */
import { BlockList, isIP } from 'node:net'

const familyOf = (address: string) => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** @param blocks network and prefix length @returns whether a text is an address in one of the blocks */
export function addressBlocks(blocks: readonly (readonly [network: string, prefix: number])[]): (address: string) => boolean {
  const list = new BlockList()
  for (const [network, prefix] of blocks) list.addSubnet(network, prefix, familyOf(network))
  return (address) => isIP(address) !== 0 && list.check(address, familyOf(address))
}

/** Loopback addresses, and the unspecified ones, which connect to this host too. */
export const isLoopback = addressBlocks([
  ['0.0.0.0', 32],
  ['127.0.0.0', 8],
  ['::', 128],
  ['::1', 128],
])

export function isSameAddress(a: string, b: string): boolean {
  return isIP(a) !== 0 && addressBlocks([[a, isIP(a) === 4 ? 32 : 128]])(b)
}
