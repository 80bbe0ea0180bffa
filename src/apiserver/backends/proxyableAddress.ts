/**
 * Refuses loopback and link-local addresses for proxied requests (L3): services there often trust every client that can connect.
 * Upstream: pkg/proxy/util (IsProxyableIP, IsProxyableHostname).
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { badRequest } from '#api/machinery/status'
import { addressBlocks, isLoopback } from './addressBlocks.ts'

/** Addresses of links, and of what listens on them to many. */
const isLinkLocal = addressBlocks([
  ['169.254.0.0', 16],
  ['224.0.0.0', 24],
  ['fe80::', 10],
  ['ff01::', 16],
  ['ff02::', 16],
])

/** Upstream's text. */
export const addressNotAllowed = 'address not allowed'

export function isProxyableAddress(address: string): boolean {
  return isIP(address) !== 0 && !isLoopback(address) && !isLinkLocal(address)
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
