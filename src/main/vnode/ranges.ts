/**
 * Picks the address ranges of a local cluster (L5), pure: the nodes' /24, the pods' range and the services' range, none of which overlaps a range in use on
 * this host, and of each family that the cluster has. Ranges that the user names are checked, not replaced.
 */
import { cidrContains, formatCidr, type IpBlock, isIpv6, networkAddress, parseCidr } from '#api/machinery/ip'
import type { IpFamilies } from '#cli/clusterManager'

export interface TakenRange {
  readonly cidr: string
  /** Names the user of the range for a message: `interface eth0`. */
  readonly by: string
}

/** Each a range of the cluster's family, or with two families one of IPv4 and one of IPv6 with a comma between. */
export interface ClusterRanges {
  readonly clusterCidr: string
  readonly serviceCidr: string
}

export interface NetworkRanges extends ClusterRanges {
  /** e.g. 10.88.7: the first three bytes of the nodes' /24, which they have on their link whatever the families of the cluster. */
  readonly prefix: string
  /** In a cluster with IPv6: the first four groups of the nodes' /64. */
  readonly prefixIpv6?: string | undefined
}

export interface AskedRanges {
  readonly podCidr?: string | undefined
  readonly serviceCidr?: string | undefined
  /** Absent: those of the ranges that are named, else IPv4. */
  readonly ipFamilies?: IpFamilies | undefined
  /** How many nodes get a block of the pods' range. */
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

type Family = 4 | 6

/** Bits of a node's block of pod addresses, and the bounds of a range of Services: upstream's largest, and the smallest with an address for cluster DNS. */
const sizes: Readonly<Record<Family, { readonly node: number; readonly services: { readonly least: number; readonly most: number } }>> = {
  4: { node: 24, services: { least: 12, most: 28 } },
  6: { node: 64, services: { least: 108, most: 124 } },
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const podCandidates = [
  usualRanges.clusterCidr,
  ...numbers(245, 254).map((n) => `10.${n}.0.0/16`),
  ...numbers(128, 243).map((n) => `10.${n}.0.0/16`),
  ...numbers(64, 95).map((n) => `100.${n}.0.0/16`),
]
/** Ranges with room for a block for each node: larger ones than usual for more nodes than a /16 has blocks. */
function podCandidatesFor(nodes: number): string[] {
  const prefix = sizes[4].node - Math.ceil(Math.log2(Math.max(1, nodes)))
  if (prefix >= 16) return podCandidates
  const step = 2 ** (16 - prefix)
  const starts = numbers(0, 255).filter((n) => n % step === 0)
  return [...starts.filter((n) => n >= 128), ...starts.filter((n) => n < 128)].map((n) => `10.${n}.0.0/${prefix}`)
}

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
/** Unique local addresses: a /48 that carries the cluster's id. */
function candidatesIpv6(id: string, subnet: string): string[] {
  const group = Number.parseInt(id, 16).toString(16)
  return numbers(0, 255).map((n) => formatCidr(blockOf(`fd53:4b${n.toString(16).padStart(2, '0')}:${group}:${subnet}`)))
}

function blockOf(cidr: string): IpBlock {
  const block = parseCidr(cidr)
  if (!block) throw new Error(`${cidr} is not a range of addresses`)
  return block
}

/**
 * @param id the cluster's
 * @throws RangeRefused for a range that the user named and cannot have, or when no range is left
 */
export function chooseRanges(id: string, asked: AskedRanges, taken: readonly TakenRange[]): NetworkRanges {
  const { pods, services, families } = checkRanges(asked)
  const named = [...pods.map((cidr) => ({ cidr, by: '--pod-cidr' })), ...services.map((cidr) => ({ cidr, by: '--service-cidr' }))]
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
  const ofEach = (what: string, ipv4: readonly string[], subnet: string) =>
    families.map((family) => pick(what, family === 4 ? ipv4 : candidatesIpv6(id, subnet))).join()
  const nodes = pick('nodes', nodeCandidates(id))
  return {
    prefix: nodes.split('.').slice(0, 3).join('.'),
    ...(families.includes(6) ? { prefixIpv6: pick('nodes', candidatesIpv6(id, '1::/64')).replace('::/64', '') } : {}),
    clusterCidr: pods.join() || ofEach('pods', podCandidatesFor(asked.nodes), '100::/56'),
    serviceCidr: services.join() || ofEach('services', serviceCandidates, '2::/112'),
  }
}

interface CheckedRanges {
  /** Those that the user named: none, or one of each family. */
  readonly pods: readonly string[]
  readonly services: readonly string[]
  readonly families: readonly Family[]
}

/** The ranges that the user named, as far as they are ranges that a cluster can have. @throws RangeRefused */
function checkRanges({ podCidr, serviceCidr, ipFamilies, nodes }: AskedRanges): CheckedRanges {
  const pods = rangesOf('--pod-cidr', podCidr)
  const services = rangesOf('--service-cidr', serviceCidr)
  const named = [...pods, ...services].map(({ family }) => family)
  const isDual = ipFamilies ? ipFamilies === 'ipv4,ipv6' : pods.length > 1 || services.length > 1
  const families: readonly Family[] = isDual ? [4, 6] : [(ipFamilies ? ipFamilies === 'ipv6' : named[0] === 6) ? 6 : 4]
  for (const [flag, ranges, text] of [
    ['--pod-cidr', pods, podCidr],
    ['--service-cidr', services, serviceCidr],
  ] as const) {
    if (ranges.length === 0 || ranges.map(({ family }) => family).join() === families.join()) continue
    if (isDual) throw new RangeRefused(`${flag} ${text}: this cluster has both address families; name a range of each, as in ${examplesOf(flag).join()}`, false)
    throw new RangeRefused(
      `${flag} ${text}: this cluster has IPv${families[0]} alone; name a range such as ${examplesOf(flag)[families[0] === 6 ? 1 : 0]}`,
      false,
    )
  }
  for (const block of pods) checkPodRange(block, nodes)
  for (const block of services) {
    const { least, most } = sizes[block.family].services
    if (block.prefixLength < least || block.prefixLength > most)
      throw new RangeRefused(`--service-cidr ${formatCidr(block)}: expected a range from /${least} to /${most}`, false)
  }
  const [podTexts, serviceTexts] = [pods.map(formatCidr), services.map(formatCidr)]
  for (const cidr of podTexts) {
    const clash = overlapping(
      cidr,
      serviceTexts.map((one) => ({ cidr: one, by: '' })),
    )
    if (clash) throw new RangeRefused(`--pod-cidr ${cidr} and --service-cidr ${clash.cidr} overlap`, false)
  }
  return { pods: podTexts, services: serviceTexts, families }
}

function checkPodRange(block: IpBlock, nodes: number): void {
  const { node } = sizes[block.family]
  const room = 2 ** (node - block.prefixLength)
  if (room >= Math.max(1, nodes)) return
  throw new RangeRefused(`--pod-cidr ${formatCidr(block)}: each of the ${nodes} nodes gets a /${node}, and the range holds ${Math.floor(room)} of them`, false)
}

/** Ranges of IPv4 and IPv6, for a message. */
function examplesOf(flag: string): readonly [string, string] {
  return flag === '--pod-cidr' ? [usualRanges.clusterCidr, 'fd00:10:1::/56'] : [usualRanges.serviceCidr, 'fd00:10:2::/112']
}

/** None, one, or one of each family, IPv4 first: the nodes' first address is of that family. */
function rangesOf(flag: string, text: string | undefined): IpBlock[] {
  if (text === undefined) return []
  const blocks = text.split(',').map((one) => parseCidr(one.trim()))
  if (!['4', '6', '4,6'].includes(blocks.map((block) => block?.family).join()))
    throw new RangeRefused(
      `${flag} ${text}: expected a range of IPv4 or IPv6 addresses such as ${examplesOf(flag).join(' or ')}, or both with a comma between`,
      false,
    )
  const found = blocks as IpBlock[]
  for (const block of found) {
    if (networkAddress(block).value !== block.address) throw new RangeRefused(`${flag} ${text}: the range is written ${formatCidr(block)}`, false)
  }
  return found
}

/** The families of a cluster with these ranges of pods. */
export function familiesOf(clusterCidr: string): IpFamilies {
  if (clusterCidr.includes(',')) return 'ipv4,ipv6'
  return isIpv6(clusterCidr) ? 'ipv6' : 'ipv4'
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
