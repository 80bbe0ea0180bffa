/**
 * Where proxied requests may not go (L3): this machine itself and its links, where services listen that trust whoever reaches them.
 * Upstream: pkg/proxy/util (IsProxyableIP, IsProxyableHostname).
 */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { badRequest } from '#api/machinery/status'

const denied = new BlockList()
for (const [network, prefix, family] of [
  ['0.0.0.0', 32, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 24, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['::1', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff01::', 16, 'ipv6'],
  ['ff02::', 16, 'ipv6'],
] as const) {
  denied.addSubnet(network, prefix, family)
}

/** Upstream's text. */
export const addressNotAllowed = 'address not allowed'

export function isProxyableAddress(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && !denied.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/** @throws BadRequest unless every address of the host may be proxied to */
export async function checkProxyable(host: string): Promise<void> {
  const addresses = isIP(host) ? [host] : await addressesOf(host)
  if (addresses.length === 0) throw badRequest('No addresses for hostname')
  if (!addresses.every(isProxyableAddress)) throw badRequest(addressNotAllowed)
}

async function addressesOf(host: string): Promise<readonly string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    throw badRequest(`lookup ${host}: no such host`)
  }
}
