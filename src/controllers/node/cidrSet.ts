/**
 * The blocks of one size in a range of addresses, IPv4 or IPv6 (L3). Pure. Upstream: pkg/controller/nodeipam/ipam/cidrset (v1.36).
 */
import { cidrContains, formatIp, networkAddress, parseCidr } from '#api/machinery/ip'
import { exponentialBuckets, type Metrics, noMetrics } from '#base/metrics'

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
export function createCidrSet(range: string, maskSize: number, metrics: Metrics = noMetrics): CidrSet {
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
  const cidrMetrics = cidrSetMetrics(metrics, range)
  cidrMetrics.max.set(count)
  const take = (index: number) => {
    if (!taken.has(index)) cidrMetrics.allocations.inc()
    taken.add(index)
  }
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
        take(index)
        cidrMetrics.tries.observe(tried)
        cidrMetrics.usage.set(taken.size / count)
        return nameOf(index)
      }
      return undefined
    },
    occupy(cidr) {
      const blocks = blocksOf(cidr)
      for (let index = blocks?.first ?? 0; blocks && index <= blocks.last; index++) take(index)
      cidrMetrics.usage.set(taken.size / count)
    },
    release(cidr) {
      const blocks = blocksOf(cidr)
      for (let index = blocks?.first ?? 0; blocks && index <= blocks.last; index++) if (taken.delete(index)) cidrMetrics.releases.inc()
      cidrMetrics.usage.set(taken.size / count)
    },
  }
}

/** The misspelt name is upstream's. */
function cidrSetMetrics(metrics: Metrics, clusterCIDR: string) {
  const labels = ['clusterCIDR']
  const counter = (name: string, help: string) => metrics.counter({ name: `node_ipam_controller_${name}`, help, labels }).series({ clusterCIDR })
  const gauge = (name: string, help: string) => metrics.gauge({ name: `node_ipam_controller_${name}`, help, labels }).series({ clusterCIDR })
  const tries = metrics.histogram({
    name: 'node_ipam_controller_cidrset_allocation_tries_per_request',
    help: 'How many blocks were passed over because they were taken.',
    labels,
    buckets: exponentialBuckets(1, 5, 5),
  })
  return {
    allocations: counter('cidrset_cidrs_allocations_total', 'Blocks that were given out.'),
    releases: counter('cidrset_cidrs_releases_total', 'Blocks that were given back.'),
    max: gauge('cirdset_max_cidrs', 'Blocks that the range has.'),
    usage: gauge('cidrset_usage_cidrs', 'The part of the CIDRs that is allocated.'),
    tries: tries.series({ clusterCIDR }),
  }
}
