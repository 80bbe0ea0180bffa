/** The addresses of one service range, in the order in which they are tried (L3, pure). Upstream: ipallocator/ipallocator.go (v1.36). */
import { formatCidr, formatIp, type IpAddress, networkAddress, parseCidr, parseIp } from '#api/machinery/ip'
import type { Random } from '#base/random'
import { staticBand } from './staticBand.ts'

export type IpFamily = 'IPv4' | 'IPv6'

export function familyOf(text: string): IpFamily {
  return parseIp(text)?.family === 6 ? 'IPv6' : 'IPv4'
}

/** More addresses than a cluster can have services. The limit keeps the arithmetic in plain numbers. */
const maxSize = 2 ** 32
const staticSize = { step: 16, max: 256 }
/** How many taken addresses are passed over before a band counts as full. */
const maxTries = 65_536

export class IpRange {
  readonly cidr: string
  readonly family: IpFamily
  readonly #first: bigint
  readonly #size: number
  readonly #dynamicFrom: number

  /** Undefined when the text is no block, or has no address for a service. */
  static parse(cidr: string): IpRange | undefined {
    const block = parseCidr(cidr)
    if (!block) return undefined
    const bits = (block.family === 4 ? 32 : 128) - block.prefixLength
    // The network's own address is never allocated, nor is the broadcast address of IPv4.
    const size = Math.min(2 ** bits, maxSize) - (block.family === 4 ? 2 : 1)
    return size > 0 ? new IpRange(formatCidr(block), block.family === 4 ? 'IPv4' : 'IPv6', networkAddress(block).value + 1n, size) : undefined
  }

  private constructor(cidr: string, family: IpFamily, first: bigint, size: number) {
    this.cidr = cidr
    this.family = family
    this.#first = first
    this.#size = size
    this.#dynamicFrom = staticBand(size, staticSize)
  }

  /** The address of the `kubernetes` service, when this is the first range. */
  get first(): string {
    return this.#at(0)
  }

  /** Whether the address is one that a service may have. */
  contains(ip: IpAddress): boolean {
    return (ip.family === 6) === (this.family === 'IPv6') && ip.value >= this.#first && ip.value < this.#first + BigInt(this.#size)
  }

  /** Whether the address is in the block at all. */
  covers(ip: IpAddress): boolean {
    const block = parseCidr(this.cidr)
    if (!block || block.family !== ip.family) return false
    const hostBits = BigInt((block.family === 4 ? 32 : 128) - block.prefixLength)
    return block.address >> hostBits === ip.value >> hostBits
  }

  /** Addresses to try: the upper band from a random place on, then the band that is kept for static choices. */
  *candidates(random: Random): Iterable<string> {
    yield* this.#band(this.#dynamicFrom, this.#size, random)
    yield* this.#band(0, this.#dynamicFrom, random)
  }

  *#band(from: number, to: number, random: Random): Iterable<string> {
    const span = to - from
    const start = span > 0 ? random.int(span) : 0
    for (let step = 0; step < Math.min(span, maxTries); step++) yield this.#at(from + ((start + step) % span))
  }

  #at(offset: number): string {
    return formatIp({ family: this.family === 'IPv4' ? 4 : 6, value: this.#first + BigInt(offset) })
  }
}
