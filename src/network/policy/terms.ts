/**
 * A policy's rules with the groups of their selectors (L3), pure: a connection is allowed if one term matches it, with one of its peers and one of its ports.
 */
import { parseIp } from '#api/machinery/ip'
import { everything } from '#api/machinery/labelSelector'
import { type AddressRanges, type CompiledPolicy, type CompiledRule, type Direction, type PeerSelector, peerSelector } from './compilePolicy.ts'
import { familyOf, type Protocol } from './facts.ts'
import type { GroupPort, PeerGroup } from './peerGroup.ts'
import { type Range, rangesHave } from './ranges.ts'

/** A connection as the kernel sees it, after the translation of a Service's address. */
export interface Connection {
  readonly source: string
  readonly destination: string
  readonly protocol: Protocol
  readonly port: number
}

export interface TermPeers {
  readonly groups: readonly PeerGroup[]
  readonly blocks: AddressRanges
}

export interface TermPorts {
  readonly ranges: ReadonlyMap<Protocol, readonly Range<number>[]>
  /** They hold the destination's address with the numbers of its named ports. */
  readonly groups: readonly PeerGroup[]
}

export interface Term {
  /** Absent: every peer. */
  readonly peers?: TermPeers | undefined
  /** Absent: every protocol and port. */
  readonly ports?: TermPorts | undefined
}

/** Finds or creates the group of a selector. */
export type GroupOf = (selector: PeerSelector, port?: GroupPort) => PeerGroup

const everyPod = peerSelector(everything, everything)

export function termsOf(policy: CompiledPolicy, direction: Direction, groupOf: GroupOf): Term[] {
  const owners = direction === 'ingress' ? peerSelector(policy.namespace, policy.target) : everyPod
  return (policy.rules[direction] ?? []).map((rule) => termOf(rule, owners, groupOf))
}

/** @param owners the pods that may have a rule's named ports: the destinations */
function termOf({ peers, ports }: CompiledRule, owners: PeerSelector, groupOf: GroupOf): Term {
  return {
    peers: peers && { groups: peers.selectors.map((selector) => groupOf(selector)), blocks: peers.blocks },
    ports: ports && { ranges: ports.ranges, groups: [...ports.names].map(([protocol, names]) => groupOf(owners, { protocol, names })) },
  }
}

/** The groups that terms refer to, once for each reference. */
export function* groupsOf(terms: readonly Term[]): Generator<PeerGroup> {
  for (const { peers, ports } of terms) {
    yield* peers?.groups ?? []
    yield* ports?.groups ?? []
  }
}

/** @param direction of the policy that the term is part of */
export function termMatches({ peers, ports }: Term, direction: Direction, connection: Connection): boolean {
  const { source, destination, protocol, port } = connection
  return (!peers || peerMatches(peers, direction === 'ingress' ? source : destination)) && (!ports || portMatches(ports, destination, protocol, port))
}

function peerMatches({ groups, blocks }: TermPeers, address: string): boolean {
  const ip = parseIp(address)
  return groups.some((group) => group.has(address)) || (ip !== undefined && rangesHave(blocks[familyOf(address)], ip.value))
}

function portMatches({ ranges, groups }: TermPorts, destination: string, protocol: Protocol, port: number): boolean {
  return rangesHave(ranges.get(protocol) ?? [], port) || groups.some((group) => group.port?.protocol === protocol && group.has(destination, port))
}
