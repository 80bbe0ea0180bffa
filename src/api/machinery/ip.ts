/**
 * IP addresses and CIDR blocks as values (L1): parsing, canonical text, containment. Pure, no resolver.
 * Upstream: net/netip as k8s.io/utils/net and apimachinery/pkg/util/validation/ip.go use it (v1.36).
 */

/** An address as a number, with its family. */
export interface IpAddress {
  readonly family: 4 | 6
  readonly value: bigint
}

export interface IpBlock {
  readonly family: 4 | 6
  /** The address as written, host bits included. */
  readonly address: bigint
  readonly prefixLength: number
}

/** Undefined when the text is no address. No leading zeros, no zones, as upstream's strict parser. */
export function parseIp(text: string): IpAddress | undefined {
  if (text.includes(':')) {
    const value = parseV6(text)
    return value === undefined ? undefined : { family: 6, value }
  }
  const value = parseV4(text)
  return value === undefined ? undefined : { family: 4, value }
}

/** 4 or 6; undefined when the text is no address. */
export function ipFamily(text: string): 4 | 6 | undefined {
  return parseIp(text)?.family
}

/** @param text a valid address or block */
export function isIpv6(text: string): boolean {
  return text.includes(':')
}

/** The address and the port as programs and URLs take them: an IPv6 address is in brackets. The host may be a name. */
export function hostPort(host: string, port: number): string {
  return `${isIpv6(host) ? `[${host}]` : host}:${port}`
}

/** RFC 5952 text. */
export function formatIp({ family, value }: IpAddress): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.')
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn))
  let best = { start: -1, length: 1 }
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (start + length < 8 && groups[start + length] === 0) length++
    if (length > best.length) best = { start, length }
  }
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(':')
  return best.start < 0 ? hex(groups) : `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`
}

/** Undefined when the text is no block. */
export function parseCidr(text: string): IpBlock | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  const ip = parseIp(text.slice(0, slash))
  const length = text.slice(slash + 1)
  if (!ip || !/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > bitsOf(ip.family)) return undefined
  return { family: ip.family, address: ip.value, prefixLength: Number(length) }
}

/** The first address of the block: its host bits cleared. */
export function networkAddress({ family, address, prefixLength }: IpBlock): IpAddress {
  const hostBits = BigInt(bitsOf(family) - prefixLength)
  return { family, value: (address >> hostBits) << hostBits }
}

/** How many addresses the block holds. */
export function cidrSize(block: IpBlock): bigint {
  return 1n << BigInt(bitsOf(block.family) - block.prefixLength)
}

export function cidrContains(block: IpBlock, ip: IpAddress): boolean {
  const hostBits = BigInt(bitsOf(block.family) - block.prefixLength)
  return block.family === ip.family && block.address >> hostBits === ip.value >> hostBits
}

/** Network address and prefix, canonical. */
export function formatCidr(block: IpBlock): string {
  return `${formatIp(networkAddress(block))}/${block.prefixLength}`
}

/** An IPv4 address in the form of IPv6: programs that connect to it reach the IPv4 address. */
export function isMapped({ family, value }: IpAddress): boolean {
  return family === 6 && value >> 32n === 0xffffn
}

export function isLoopback(ip: IpAddress): boolean {
  return ip.family === 4 ? ip.value >> 24n === 127n : ip.value === 1n
}

export function isUnspecified(ip: IpAddress): boolean {
  return ip.value === 0n
}

export function isLinkLocalUnicast(ip: IpAddress): boolean {
  return ip.family === 4 ? ip.value >> 16n === 0xa9fen : ip.value >> 118n === 0x3fan
}

export function isLinkLocalMulticast(ip: IpAddress): boolean {
  return ip.family === 4 ? ip.value >> 8n === 0xe00000n : ((ip.value >> 112n) & 0xff0fn) === 0xff02n
}

/** The message for a field that is no IP address. */
export const invalidIpMessage = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
export const invalidCidrMessage = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

function bitsOf(family: 4 | 6): number {
  return family === 4 ? 32 : 128
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || parts.some((part) => !/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255)) return undefined
  return BigInt(parts.reduce((value, part) => value * 256 + Number(part), 0))
}

function parseV6(text: string): bigint | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const head = groupsOf(halves[0] ?? '', halves.length === 1)
  const tail = halves.length === 2 ? groupsOf(halves[1] ?? '', true) : []
  if (!head || !tail) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  return [...head, ...Array.from({ length: missing }, () => 0), ...tail].reduce((value, group) => (value << 16n) | BigInt(group), 0n)
}

/** The 16-bit groups of one side of '::'; an IPv4 tail counts as two. */
function groupsOf(text: string, last: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const groups: number[] = []
  for (const [i, part] of parts.entries()) {
    if (last && i === parts.length - 1 && part.includes('.')) {
      const v4 = parseV4(part)
      if (v4 === undefined) return undefined
      groups.push(Number(v4 >> 16n), Number(v4 & 0xffffn))
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}
