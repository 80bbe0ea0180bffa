/**
 * A NetworkPolicy in the form that the model and the renderer work with (L3), pure: selectors compiled, policyTypes defaulted, blocks and ranges of ports
 * merged so that none overlap, as sets in the kernel require. Upstream: k8s.io/api/networking/v1 (v1.36), sigs.k8s.io/kube-network-policies.
 */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#api/gen/types/networking.v1'
import { cidrContains, formatCidr, type IpBlock, networkAddress, parseCidr } from '#api/machinery/ip'
import { nothing, type Selector, selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { type Protocol, protocolOf } from './facts.ts'

/** Selects pods as a peer does. */
export interface PeerSelector {
  /** Identifies selectors that select the same pods. */
  readonly key: string
  /** Absent: the namespaces that `namespaces` selects. */
  readonly namespace?: string | undefined
  readonly namespaces?: Selector | undefined
  readonly pods: Selector
}

export interface Block {
  readonly block: IpBlock
  /** Parts of the block, disjoint. */
  readonly except: readonly IpBlock[]
}

export interface PortRange {
  readonly from: number
  readonly to: number
}

export interface PolicyPorts {
  /** Protocol → disjoint ranges in ascending order. */
  readonly ranges: ReadonlyMap<Protocol, readonly PortRange[]>
  readonly named: readonly { readonly protocol: Protocol; readonly name: string }[]
}

export interface CompiledRule {
  /** Absent: all peers. */
  readonly peers?: readonly (PeerSelector | Block)[] | undefined
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
}

export function compilePolicy(policy: Frozen<NetworkPolicy>): CompiledPolicy {
  const { spec } = policy
  const namespace = policy.metadata.namespace ?? ''
  const types = spec?.policyTypes?.length ? spec.policyTypes : ['Ingress', ...(spec?.egress?.length ? ['Egress'] : [])]
  const ingress = types.includes('Ingress') && (spec?.ingress ?? []).map(({ from, ports }) => compileRule(namespace, from, ports))
  const egress = types.includes('Egress') && (spec?.egress ?? []).map(({ to, ports }) => compileRule(namespace, to, ports))
  return {
    key: keyOf(policy),
    namespace,
    target: safeSelector(spec?.podSelector ?? {}),
    rules: { ...(ingress ? { ingress } : {}), ...(egress ? { egress } : {}) },
  }
}

function compileRule(
  namespace: string,
  peers: readonly Frozen<NetworkPolicyPeer>[] | undefined,
  ports: readonly Frozen<NetworkPolicyPort>[] | undefined,
): CompiledRule {
  return {
    ...(peers?.length ? { peers: peers.flatMap((peer) => compilePeer(namespace, peer)) } : {}),
    ...(ports?.length ? { ports: compilePorts(ports) } : {}),
  }
}

function compilePeer(namespace: string, { ipBlock, namespaceSelector, podSelector }: Frozen<NetworkPolicyPeer>): (PeerSelector | Block)[] {
  if (ipBlock) return compileBlock(ipBlock)
  if (!namespaceSelector && !podSelector) return []
  return [peerSelector(namespaceSelector ? safeSelector(namespaceSelector) : namespace, safeSelector(podSelector ?? {}))]
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

function compileBlock({ cidr, except = [] }: Frozen<IPBlock>): Block[] {
  const block = parseCidr(cidr)
  if (!block) return []
  const parts = except.map(parseCidr)
  // An exception that cannot be read may mean any part of the block.
  if (parts.includes(undefined)) return []
  return [{ block, except: disjoint(parts as IpBlock[]) }]
}

/** Without the blocks that others contain. Blocks never overlap partly. */
export function disjoint(blocks: readonly IpBlock[]): IpBlock[] {
  const widestFirst = [...blocks].sort(
    (a, b) => a.family - b.family || compare(networkAddress(a).value, networkAddress(b).value) || a.prefixLength - b.prefixLength,
  )
  const kept: IpBlock[] = []
  for (const block of widestFirst) {
    const last = kept.at(-1)
    if (!last || !cidrContains(last, networkAddress(block))) kept.push(block)
  }
  return kept
}

const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0)

const allPorts: PortRange = { from: 0, to: 65_535 }

function compilePorts(ports: readonly Frozen<NetworkPolicyPort>[]): PolicyPorts {
  const ranges = new Map<Protocol, PortRange[]>()
  const named = new Map<string, { protocol: Protocol; name: string }>()
  for (const { port, endPort, protocol: text } of ports) {
    const protocol = protocolOf(text)
    if (!protocol) continue
    if (typeof port === 'string') named.set(`${protocol} ${port}`, { protocol, name: port })
    else {
      const range = port === undefined ? allPorts : { from: port, to: endPort ?? port }
      const list = ranges.get(protocol)
      if (list) list.push(range)
      else ranges.set(protocol, [range])
    }
  }
  return { ranges: new Map([...ranges].map(([protocol, list]) => [protocol, merged(list)])), named: [...named.values()] }
}

function merged(ranges: readonly PortRange[]): PortRange[] {
  const result: { from: number; to: number }[] = []
  for (const { from, to } of [...ranges].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1)
    if (last && from <= last.to + 1) last.to = Math.max(last.to, to)
    else result.push({ from, to })
  }
  return result
}

/** The block in canonical text. */
export function blockText(block: IpBlock): string {
  return formatCidr(block)
}
