/**
 * Picks the address ranges of a local cluster (L5), pure: the nodes' /24, the pods' range and the services' range, none of which overlaps a range in use on
 * this host. Ranges that the user names are checked, not replaced. IPv4 only: nodes of local clusters have no IPv6 address.
 */
import { cidrContains, formatCidr, type IpBlock, networkAddress, parseCidr } from '#api/machinery/ip'

export interface TakenRange {
  readonly cidr: string
  /** Names the user of the range for a message: `interface eth0`. */
  readonly by: string
}

export interface ClusterRanges {
  readonly clusterCidr: string
  readonly serviceCidr: string
}

export interface NetworkRanges extends ClusterRanges {
  /** e.g. 10.88.7: the first three bytes of the nodes' /24. */
  readonly prefix: string
}

export interface AskedRanges {
  readonly podCidr?: string | undefined
  readonly serviceCidr?: string | undefined
  /** How many nodes get a /24 of the pods' range. */
  readonly nodes: number
}

/** A range that cannot be had. `isClash`: it is a range, and something else uses it. */
export class RangeRefused extends Error {
  readonly isClash: boolean

  constructor(message: string, isClash: boolean) {
    super(message)
    this.isClash = isClash
  }
}

/** The ranges of a cluster that is alone on its host. */
export const usualRanges: ClusterRanges = { clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' }

const nodeMaskSize = 24
/** Upstream's bound for a range of Services; the smallest range has an address for cluster DNS, the tenth. */
const serviceSizes = { least: 12, most: 28 }

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const podCandidates = [
  usualRanges.clusterCidr,
  ...numbers(245, 254).map((n) => `10.${n}.0.0/16`),
  ...numbers(128, 243).map((n) => `10.${n}.0.0/16`),
  ...numbers(64, 95).map((n) => `100.${n}.0.0/16`),
]
const serviceCandidates = [
  usualRanges.serviceCidr,
  ...numbers(97, 127).map((n) => `10.${n}.0.0/16`),
  ...numbers(32, 87).map((n) => `10.${n}.0.0/16`),
  ...numbers(96, 127).map((n) => `100.${n}.0.0/16`),
  ...numbers(16, 31).map((n) => `172.${n}.0.0/16`),
]
/** Starts at a place that the cluster's id suggests, so that two hosts on one link seldom have the same. */
function nodeCandidates(id: string): string[] {
  const first = Number.parseInt(id, 16) % 256
  return [...numbers(0, 255).map((n) => `10.88.${(first + n) % 256}.0/24`), ...numbers(0, 255).map((n) => `192.168.${255 - n}.0/24`)]
}

/**
 * @param id the cluster's
 * @throws RangeRefused for a range that the user named and cannot have, or when no range is left
 */
export function chooseRanges(id: string, asked: AskedRanges, taken: readonly TakenRange[]): NetworkRanges {
  const { clusterCidr, serviceCidr } = checkRanges(asked)
  const named = [...(clusterCidr ? [{ cidr: clusterCidr, by: '--pod-cidr' }] : []), ...(serviceCidr ? [{ cidr: serviceCidr, by: '--service-cidr' }] : [])]
  for (const { cidr, by } of named) {
    const clash = overlapping(cidr, taken)
    if (clash) throw new RangeRefused(`${by} ${cidr} overlaps ${clash.cidr} of ${clash.by}`, true)
  }
  const used = [...taken, ...named]
  const pick = (what: string, candidates: readonly string[]) => {
    const found = candidates.find((cidr) => !overlapping(cidr, used))
    if (!found) throw new RangeRefused(`every range for ${what} is in use on this host: ${candidates[0]} overlaps ${clashOf(candidates[0], used)}`, true)
    used.push({ cidr: found, by: what })
    return found
  }
  const nodes = pick('nodes', nodeCandidates(id))
  return {
    prefix: nodes.split('.').slice(0, 3).join('.'),
    clusterCidr: clusterCidr ?? pick('pods', podCandidates),
    serviceCidr: serviceCidr ?? pick('services', serviceCandidates),
  }
}

/** The ranges that the user named, as far as they are ranges that a cluster can have. @throws RangeRefused */
export function checkRanges({ podCidr, serviceCidr, nodes }: AskedRanges): Partial<ClusterRanges> {
  const pods = podCidr === undefined ? undefined : rangeOf('--pod-cidr', podCidr)
  const services = serviceCidr === undefined ? undefined : rangeOf('--service-cidr', serviceCidr)
  const room = pods ? 2 ** (nodeMaskSize - pods.prefixLength) : 0
  if (pods && room < Math.max(1, nodes)) {
    throw new RangeRefused(`--pod-cidr ${podCidr}: each of the ${nodes} nodes gets a /${nodeMaskSize}, and the range holds ${Math.floor(room)} of them`, false)
  }
  if (services && (services.prefixLength < serviceSizes.least || services.prefixLength > serviceSizes.most)) {
    throw new RangeRefused(`--service-cidr ${serviceCidr}: expected a range from /${serviceSizes.least} to /${serviceSizes.most}`, false)
  }
  if (podCidr && serviceCidr && overlapping(podCidr, [{ cidr: serviceCidr, by: '' }])) {
    throw new RangeRefused(`--pod-cidr ${podCidr} and --service-cidr ${serviceCidr} overlap`, false)
  }
  return { ...(podCidr ? { clusterCidr: podCidr } : {}), ...(serviceCidr ? { serviceCidr } : {}) }
}

function rangeOf(flag: string, text: string): IpBlock {
  const block = parseCidr(text)
  if (block?.family !== 4) throw new RangeRefused(`${flag} ${text}: expected a range of IPv4 addresses such as ${usualRanges.clusterCidr}`, false)
  if (networkAddress(block).value !== block.address) throw new RangeRefused(`${flag} ${text}: the range is written ${formatCidr(block)}`, false)
  return block
}

/** The first range that shares an address with `cidr`. */
export function overlapping(cidr: string, taken: readonly TakenRange[]): TakenRange | undefined {
  const block = parseCidr(cidr)
  return taken.find((one) => {
    const other = parseCidr(one.cidr)
    return block && other && (cidrContains(block, networkAddress(other)) || cidrContains(other, networkAddress(block)))
  })
}

function clashOf(cidr = '', taken: readonly TakenRange[]): string {
  const clash = overlapping(cidr, taken)
  return `${clash?.cidr} of ${clash?.by}`
}
