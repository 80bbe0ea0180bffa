/**
 * A policy's rules taken apart into terms (L3), pure: a connection is allowed if one term matches it. A term has one peer and one kind of ports, so that a term
 * is one rule in the kernel for each family and protocol.
 */
import { cidrContains, parseIp } from '#api/machinery/ip'
import { everything } from '#api/machinery/labelSelector'
import { type Block, type CompiledPolicy, type CompiledRule, type Direction, type PeerSelector, type PortRange, peerSelector } from './compilePolicy.ts'
import type { Protocol } from './facts.ts'
import type { GroupPort, PeerGroup } from './peerGroup.ts'

/** A connection as the kernel sees it, after the translation of a Service's address. */
export interface Connection {
  readonly source: string
  readonly destination: string
  readonly protocol: Protocol
  readonly port: number
}

export interface Term {
  /** Absent: every peer. */
  readonly group?: PeerGroup | undefined
  readonly block?: Block | undefined
  /** Absent: every protocol and port. */
  readonly ranges?: ReadonlyMap<Protocol, readonly PortRange[]> | undefined
  /** Holds the destination's address with the number of its named port. */
  readonly portGroup?: PeerGroup | undefined
}

/** Finds or creates the group of a selector. */
export type GroupOf = (selector: PeerSelector, port?: GroupPort) => PeerGroup

const everyPod = peerSelector(everything, everything)

export function termsOf(policy: CompiledPolicy, direction: Direction, groupOf: GroupOf): Term[] {
  const targets = peerSelector(policy.namespace, policy.target)
  return (policy.rules[direction] ?? []).flatMap((rule) => ruleTerms(rule, direction === 'ingress' ? targets : undefined, groupOf))
}

/** @param targets the pods that have a rule's named ports; absent: the peer has them */
function ruleTerms({ peers, ports }: CompiledRule, targets: PeerSelector | undefined, groupOf: GroupOf): Term[] {
  return (peers ?? [undefined]).flatMap((peer): Term[] => {
    const to = peer === undefined ? {} : 'block' in peer ? { block: peer } : { group: groupOf(peer) }
    if (!ports) return [to]
    const owner = targets ?? (peer && !('block' in peer) ? peer : everyPod)
    const numbered: Term[] = ports.ranges.size > 0 ? [{ ...to, ranges: ports.ranges }] : []
    return [...numbered, ...ports.named.map((port) => ({ ...to, portGroup: groupOf(owner, port) }))]
  })
}

/** The groups that terms refer to, once for each reference. */
export function* groupsOf(terms: readonly Term[]): Generator<PeerGroup> {
  for (const { group, portGroup } of terms) {
    if (group) yield group
    if (portGroup) yield portGroup
  }
}

/** @param direction of the policy that the term is part of */
export function termMatches({ group, block, ranges, portGroup }: Term, direction: Direction, connection: Connection): boolean {
  const { source, destination, protocol, port } = connection
  const peer = direction === 'ingress' ? source : destination
  if (group && !group.has(peer, port)) return false
  if (block && !blockHas(block, peer)) return false
  if (ranges && !ranges.get(protocol)?.some(({ from, to }) => port >= from && port <= to)) return false
  return !portGroup || (portGroup.port?.protocol === protocol && portGroup.has(destination, port))
}

function blockHas({ block, except }: Block, address: string): boolean {
  const ip = parseIp(address)
  return ip !== undefined && cidrContains(block, ip) && !except.some((part) => cidrContains(part, ip))
}
