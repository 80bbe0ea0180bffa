/**
 * A NetworkPolicy in the form that the model and the renderer work with (L3), pure: selectors compiled, policyTypes defaulted, the blocks of
 * a rule and its ranges of ports merged so that none overlap, as sets in the kernel require. Upstream: k8s.io/api/networking/v1 (v1.36), sigs.k8s.io/kube-network-policies.
 */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#api/gen/types/networking.v1'
import { parseCidr } from '#api/machinery/ip'
import { nothing, type Selector, selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { type Family, type Protocol, protocolOf } from './facts.ts'
import { merged, type Range, rangeOfBlock, without } from './ranges.ts'

/** Selects pods as a peer does. */
export interface PeerSelector {
  /** Identifies selectors that select the same pods. */
  readonly key: string
  /** Absent: the namespaces that `namespaces` selects. */
  readonly namespace?: string | undefined
  readonly namespaces?: Selector | undefined
  readonly pods: Selector
}

/** Disjoint ranges in ascending order. */
export type AddressRanges = Readonly<Record<Family, readonly Range<bigint>[]>>

export interface PolicyPeers {
  /** No two of them with the same key. */
  readonly selectors: readonly PeerSelector[]
  /** The addresses of all blocks, without their exceptions. */
  readonly blocks: AddressRanges
}

export interface PolicyPorts {
  /** Protocol → disjoint ranges in ascending order. */
  readonly ranges: ReadonlyMap<Protocol, readonly Range<number>[]>
  readonly names: ReadonlyMap<Protocol, ReadonlySet<string>>
}

export interface CompiledRule {
  /** Absent: all peers. */
  readonly peers?: PolicyPeers | undefined
  /** Absent: all protocols and ports. */
  readonly ports?: PolicyPorts | undefined
}

export type Direction = 'ingress' | 'egress'

export interface CompiledPolicy {
  /** namespace/name */
  readonly key: string
  readonly namespace: string
  readonly target: Selector
  /** Rules of the directions in which the policy isolates its pods. */
  readonly rules: Readonly<Partial<Record<Direction, readonly CompiledRule[]>>>
  /** Why the policy allows nothing, although it has rules. */
  readonly obstacle?: string | undefined
}

/** For each selector and each list of named ports the kernel has sets, and its time for a transaction grows with the square of their number. */
const mostSets = 1000

type Work<T> = Generator<undefined, T>
const stepSize = 500

/** Works in short steps: a policy may list tens of thousands of blocks. */
export function* compilePolicy(policy: Frozen<NetworkPolicy>): Work<CompiledPolicy> {
  const { spec } = policy
  const namespace = policy.metadata.namespace ?? ''
  const types = spec?.policyTypes?.length ? spec.policyTypes : ['Ingress', ...(spec?.egress?.length ? ['Egress'] : [])]
  const rules: { -readonly [Of in Direction]?: CompiledRule[] } = {}
  if (types.includes('Ingress')) {
    rules.ingress = []
    for (const { from, ports } of spec?.ingress ?? []) rules.ingress.push(yield* compileRule(namespace, from, ports))
  }
  if (types.includes('Egress')) {
    rules.egress = []
    for (const { to, ports } of spec?.egress ?? []) rules.egress.push(yield* compileRule(namespace, to, ports))
  }
  const sets = setsOf(rules)
  const compiled = { key: keyOf(policy), namespace, target: safeSelector(spec?.podSelector ?? {}), rules }
  if (sets <= mostSets) return compiled
  const isolated = Object.fromEntries(Object.keys(rules).map((direction) => [direction, []]))
  return { ...compiled, rules: isolated, obstacle: `it has ${sets} selectors of peers and lists of named ports, more than ${mostSets}` }
}

function setsOf(rules: CompiledPolicy['rules']): number {
  const selectors = new Set<string>()
  let named = 0
  for (const { peers, ports } of Object.values(rules).flat()) {
    for (const { key } of peers?.selectors ?? []) selectors.add(key)
    named += ports?.names.size ?? 0
  }
  return selectors.size + named
}

function* compileRule(
  namespace: string,
  peers: readonly Frozen<NetworkPolicyPeer>[] | undefined,
  ports: readonly Frozen<NetworkPolicyPort>[] | undefined,
): Work<CompiledRule> {
  return {
    ...(peers?.length ? { peers: yield* compilePeers(namespace, peers) } : {}),
    ...(ports?.length ? { ports: compilePorts(ports) } : {}),
  }
}

function* compilePeers(namespace: string, peers: readonly Frozen<NetworkPolicyPeer>[]): Work<PolicyPeers> {
  const selectors = new Map<string, PeerSelector>()
  const blocks: Record<Family, Range<bigint>[]> = { v4: [], v6: [] }
  for (const [i, { ipBlock, namespaceSelector, podSelector }] of peers.entries()) {
    if (i % stepSize === 0) yield
    if (ipBlock) yield* addBlock(ipBlock, blocks)
    else if (namespaceSelector || podSelector) {
      const selector = peerSelector(namespaceSelector ? safeSelector(namespaceSelector) : namespace, safeSelector(podSelector ?? {}))
      selectors.set(selector.key, selector)
    }
  }
  yield
  return { selectors: [...selectors.values()], blocks: { v4: merged(blocks.v4), v6: merged(blocks.v6) } }
}

/** @param namespaces the name of a namespace, or a selector of namespaces */
export function peerSelector(namespaces: string | Selector, pods: Selector): PeerSelector {
  if (typeof namespaces === 'string') return { key: JSON.stringify([namespaces, identity(pods)]), namespace: namespaces, pods }
  return { key: JSON.stringify([identity(namespaces), identity(pods)]), namespaces, pods }
}

const identity = (selector: Selector) => [selector.isEmpty, selector.requirements]

/** A selector that was stored although it is malformed selects nothing. */
function safeSelector(selector: Frozen<LabelSelector>): Selector {
  try {
    return selectorOf(selector)
  } catch {
    return nothing
  }
}

function* addBlock({ cidr, except = [] }: Frozen<IPBlock>, to: Readonly<Record<Family, Range<bigint>[]>>): Work<void> {
  const block = parseCidr(cidr)
  if (!block) return
  const holes: Range<bigint>[] = []
  for (const [i, text] of except.entries()) {
    if (i % stepSize === stepSize - 1) yield
    const part = parseCidr(text)
    // An exception that cannot be read may mean any part of the block.
    if (!part) return
    if (part.family === block.family) holes.push(rangeOfBlock(part))
  }
  for (const range of without(rangeOfBlock(block), merged(holes))) to[block.family === 4 ? 'v4' : 'v6'].push(range)
}

const allPorts: Range<number> = { from: 0, to: 65_535 }

function compilePorts(ports: readonly Frozen<NetworkPolicyPort>[]): PolicyPorts {
  const ranges = new Map<Protocol, Range<number>[]>()
  const names = new Map<Protocol, Set<string>>()
  for (const { port, endPort, protocol: text } of ports) {
    const protocol = protocolOf(text)
    if (!protocol) continue
    if (typeof port === 'string') names.set(protocol, (names.get(protocol) ?? new Set()).add(port))
    else {
      const list = ranges.get(protocol) ?? []
      ranges.set(protocol, list)
      list.push(port === undefined ? allPorts : { from: port, to: endPort ?? port })
    }
  }
  return { ranges: new Map([...ranges].map(([protocol, list]) => [protocol, merged(list)])), names }
}
