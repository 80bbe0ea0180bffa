/**
 * CEL's libraries for IP addresses and CIDR blocks (L1). Upstream: apiserver/pkg/cel/library/ip.go, cidr.go, pkg/cel/ip.go, cidr.go (v1.36).
 */
import type { Library } from '#cel/declarations'
import { declare, member, overload } from '#cel/declarations'
import { opaqueType } from '#cel/types'
import { EvaluationError, OpaqueValue } from '#cel/values'
import type { IpAddress, IpBlock } from '../machinery/ip.ts'
import {
  cidrContains,
  formatIp,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isLoopback,
  isMapped,
  isUnspecified,
  networkAddress,
  parseCidr,
  parseIp,
} from '../machinery/ip.ts'

export class IpValue extends OpaqueValue {
  readonly typeName = 'net.IP'
  readonly address: IpAddress
  override readonly costSize: number

  constructor(address: IpAddress) {
    super()
    this.address = address
    this.costSize = address.family === 4 ? 4 : 16
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof IpValue && this.address.family === other.address.family && this.address.value === other.address.value
  }
}

export class CidrValue extends OpaqueValue {
  readonly typeName = 'net.CIDR'
  readonly block: IpBlock
  /** The prefix in bytes. */
  override readonly costSize: number

  constructor(block: IpBlock) {
    super()
    this.block = block
    this.costSize = Math.ceil(block.prefixLength / 8)
  }
  equals(other: OpaqueValue): boolean {
    if (!(other instanceof CidrValue)) return false
    const [a, b] = [this.block, other.block]
    return a.family === b.family && a.address === b.address && a.prefixLength === b.prefixLength
  }
}

/** The address, or why there is none. */
function readIp(text: string): IpAddress | string {
  const quoted = JSON.stringify(text)
  const [plain, zone] = text.split('%', 2) as [string, string?]
  if (zone !== undefined && plain.includes(':') && parseIp(plain)) {
    return zone === '' ? parseFault(text, 'zone must be a non-empty string') : `IP address ${quoted} with zone value is not allowed`
  }
  const address = parseIp(text)
  if (!address) return parseFault(text, 'unable to parse IP')
  return isMapped(address) ? `IPv4-mapped IPv6 address ${quoted} is not allowed` : address
}

const parseFault = (text: string, why: string): string =>
  `IP Address ${JSON.stringify(text)} parse error during conversion from string: ParseAddr(${JSON.stringify(text)}): ${why}`

function readCidr(text: string): IpBlock | string {
  const block = parseCidr(text)
  if (!block) return `network address parse error during conversion from string: netip.ParsePrefix(${JSON.stringify(text)}): ${cidrFault(text)}`
  return isMapped({ family: block.family, value: block.address }) ? `IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed` : block
}

function cidrFault(text: string): string {
  const slash = text.lastIndexOf('/')
  if (slash < 0) return "no '/'"
  const address = text.slice(0, slash)
  if (!parseIp(address)) return `ParseAddr(${JSON.stringify(address)}): unable to parse IP`
  const bits = text.slice(slash + 1)
  return /^\d+$/.test(bits) && !/^0\d/.test(bits) ? 'prefix length out of range' : `bad bits after slash: ${JSON.stringify(bits)}`
}

function toIp(text: string): IpValue {
  const address = readIp(text)
  if (typeof address === 'string') throw new EvaluationError(address)
  return new IpValue(address)
}

function toCidr(text: string): CidrValue {
  const block = readCidr(text)
  if (typeof block === 'string') throw new EvaluationError(`network address parse error during conversion from string: ${block}`)
  return new CidrValue(block)
}

const addressOf = ({ block }: CidrValue): IpAddress => ({ family: block.family, value: block.address })

function isGlobalUnicast({ address }: IpValue): boolean {
  const { family, value } = address
  const isMulticast = family === 4 ? value >> 28n === 0xen : value >> 120n === 0xffn
  const isBroadcast = family === 4 && value === 0xffffffffn
  return !(isMulticast || isBroadcast || isUnspecified(address) || isLoopback(address) || isLinkLocalUnicast(address))
}

const question = (id: string, ask: (address: IpAddress) => boolean) => member(id, '(net.IP) -> bool', ({ address }: IpValue) => ask(address))

export const ipLibrary: Library = {
  typeNames: [opaqueType('net.IP')],
  functions: [
    declare('ip', overload('string_to_ip', '(string) -> net.IP', toIp)),
    declare(
      'family',
      member('ip_family', '(net.IP) -> int', ({ address }: IpValue) => address.family),
    ),
    declare(
      'ip.isCanonical',
      overload('ip_is_canonical', '(string) -> bool', (text: string) => formatIp(toIp(text).address) === text),
    ),
    declare('isUnspecified', question('ip_is_unspecified', isUnspecified)),
    declare('isLoopback', question('ip_is_loopback', isLoopback)),
    declare('isLinkLocalMulticast', question('ip_is_link_local_multicast', isLinkLocalMulticast)),
    declare('isLinkLocalUnicast', question('ip_is_link_local_unicast', isLinkLocalUnicast)),
    declare('isGlobalUnicast', member('ip_is_global_unicast', '(net.IP) -> bool', isGlobalUnicast)),
    declare(
      'isIP',
      overload('is_ip', '(string) -> bool', (text: string) => typeof readIp(text) !== 'string'),
    ),
    declare(
      'string',
      overload('ip_to_string', '(net.IP) -> string', ({ address }: IpValue) => formatIp(address)),
    ),
  ],
}

const containsIp = ({ block }: CidrValue, { address }: IpValue): boolean => cidrContains(block, address)

function containsCidr({ block }: CidrValue, other: CidrValue): boolean {
  return block.prefixLength <= other.block.prefixLength && cidrContains(block, addressOf(other))
}

function masked({ block }: CidrValue): CidrValue {
  return new CidrValue({ ...block, address: networkAddress(block).value })
}

export const cidrLibrary: Library = {
  typeNames: [opaqueType('net.CIDR')],
  functions: [
    declare('cidr', overload('string_to_cidr', '(string) -> net.CIDR', toCidr)),
    declare(
      'containsIP',
      member('cidr_contains_ip_string', '(net.CIDR, string) -> bool', (cidr: CidrValue, text: string) => containsIp(cidr, toIp(text))),
      member('cidr_contains_ip_ip', '(net.CIDR, net.IP) -> bool', containsIp),
    ),
    declare(
      'containsCIDR',
      member('cidr_contains_cidr_string', '(net.CIDR, string) -> bool', (cidr: CidrValue, text: string) => containsCidr(cidr, toCidr(text))),
      member('cidr_contains_cidr', '(net.CIDR, net.CIDR) -> bool', containsCidr),
    ),
    declare(
      'ip',
      member('cidr_ip', '(net.CIDR) -> net.IP', (cidr: CidrValue) => new IpValue(addressOf(cidr))),
    ),
    declare(
      'prefixLength',
      member('cidr_prefix_length', '(net.CIDR) -> int', ({ block }: CidrValue) => block.prefixLength),
    ),
    declare('masked', member('cidr_masked', '(net.CIDR) -> net.CIDR', masked)),
    declare(
      'isCIDR',
      overload('is_cidr', '(string) -> bool', (text: string) => typeof readCidr(text) !== 'string'),
    ),
    declare(
      'string',
      overload('cidr_to_string', '(net.CIDR) -> string', (cidr: CidrValue) => `${formatIp(addressOf(cidr))}/${cidr.block.prefixLength}`),
    ),
  ],
}
