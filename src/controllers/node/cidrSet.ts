/**
 * The blocks of one size in a range of addresses, IPv4 or IPv6 (L3). Pure. Upstream: pkg/controller/nodeipam/ipam/cidrset (v1.36).
 */
import { cidrContains, formatIp, networkAddress, parseCidr } from '#api/machinery/ip'

export interface CidrSet {
  readonly family: 4 | 6
  /** The next free block, after the one given last so that blocks rest before they return; undefined when all are taken. */
  take(): string | undefined
  /** Takes every block that the range touches; what lies elsewhere is no matter. */
  occupy(cidr: string): void
  release(cidr: string): void
}

/** More blocks than this would be too many to keep count of. */
const mostBits = 16

/** @throws Error when the blocks do not fit into the range, or are too many */
export function createCidrSet(range: string, maskSize: number): CidrSet {
  const whole = parseCidr(range)
  if (!whole) throw new Error(`invalid CIDR: ${range}`)
  const { family, prefixLength } = whole
  const width = family === 4 ? 32 : 128
  if (maskSize < prefixLength || maskSize > width) throw new Error(`invalid node mask size ${maskSize} for the cluster CIDR ${range}`)
  if (family === 6 && maskSize - prefixLength > mostBits) throw new Error('the cluster CIDR is too big for the node mask size')
  const start = networkAddress(whole).value
  const blockSize = 1n << BigInt(width - maskSize)
  const count = 2 ** (maskSize - prefixLength)
  const taken = new Set<number>()
  let next = 0
  const nameOf = (index: number) => `${formatIp({ family, value: start + BigInt(index) * blockSize })}/${maskSize}`
  const blocksOf = (cidr: string): { first: number; last: number } | undefined => {
    const block = parseCidr(cidr)
    if (block?.family !== family) return undefined
    const from = networkAddress(block)
    const inside = cidrContains(whole, from)
    if (!inside && !cidrContains(block, networkAddress(whole))) return undefined
    const last = from.value + (1n << BigInt(width - block.prefixLength)) - 1n
    const indexOf = (value: bigint) => Number((value - start) / blockSize)
    return { first: inside ? indexOf(from.value) : 0, last: Math.min(count - 1, indexOf(last)) }
  }
  return {
    family,
    take() {
      for (let tried = 0; tried < count; tried++) {
        const index = next
        next = (next + 1) % count
        if (taken.has(index)) continue
        taken.add(index)
        return nameOf(index)
      }
      return undefined
    },
    occupy(cidr) {
      const blocks = blocksOf(cidr)
      for (let index = blocks?.first ?? 0; blocks && index <= blocks.last; index++) taken.add(index)
    },
    release(cidr) {
      const blocks = blocksOf(cidr)
      for (let index = blocks?.first ?? 0; blocks && index <= blocks.last; index++) taken.delete(index)
    },
  }
}
