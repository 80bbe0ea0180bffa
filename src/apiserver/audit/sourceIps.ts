/**
 * The source addresses of a request (L3): those in X-Forwarded-For and X-Real-Ip, and the peer's, which cannot be forged.
 * Upstream: apimachinery/pkg/util/net SourceIPs.
 */
import { isIP } from 'node:net'
import type { ServerRequest } from '../core/request.ts'

export function sourceIps({ headers, remoteAddress }: Pick<ServerRequest, 'headers' | 'remoteAddress'>): readonly string[] {
  const forwarded = headers['x-forwarded-for']
  const real = headers['x-real-ip']
  const peer = plain(remoteAddress)
  if (forwarded === undefined && real === undefined) return isIP(peer) > 0 ? [peer] : []
  const ips = first(forwarded)
    .split(',')
    .map((part) => plain(part.trim()))
    .filter((ip) => isIP(ip) > 0)
  const behind = plain(first(real))
  if (isIP(behind) > 0 && !ips.includes(behind)) ips.push(behind)
  if (isIP(peer) > 0 && ips.at(-1) !== peer) ips.push(peer)
  return ips
}

function first(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header : (header?.[0] ?? '')
}

/** Unwraps IPv4-mapped IPv6 addresses, as dual-stack sockets report them. */
function plain(address: string): string {
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
}
