/**
 * Network policies in nftables (L3), pure: a map leads from the address of an isolated pod to the chain of its policies, which ends with a drop; a policy's chain
 * accepts what its rules match. Egress and ingress are two base chains on one hook: to accept in the first passes the packet to the second. One table holds both
 * families. The hook sees packets after the translation of a Service's address.
 */
import { formatIp } from '#api/machinery/ip'
import type { TableContents } from '#host/nftables'
import type { Direction } from './compilePolicy.ts'
import { type Family, familyOf } from './facts.ts'
import { type ActivePolicy, directions, type Isolation } from './isolations.ts'
import type { PolicyModel } from './model.ts'
import type { PeerGroup } from './peerGroup.ts'
import type { Range } from './ranges.ts'
import type { Term, TermPeers, TermPorts } from './terms.ts'

export const policyTable = 'skiff-policy'

const families: readonly Family[] = ['v4', 'v6']
const syntaxes = {
  v4: { ip: 'ip', type: 'ipv4_addr', nfproto: 'ipv4', family: 4, last: (1n << 32n) - 1n },
  v6: { ip: 'ip6', type: 'ipv6_addr', nfproto: 'ipv6', family: 6, last: (1n << 128n) - 1n },
} as const

type Chains = ReadonlyMap<string, readonly string[]>

/** Renders models in short steps; keeps the rules of what has not changed, so that a table is compared by reference. */
export function createPolicyRenderer(): (model: PolicyModel) => Generator<undefined, TableContents> {
  const rendered = new WeakMap<object, Chains>()
  const cached = (of: object, render: () => Chains) => {
    const chains = rendered.get(of) ?? render()
    rendered.set(of, chains)
    return chains
  }
  return function* (model) {
    const chains = new Map<string, readonly string[]>()
    const add = (more: Chains) => {
      for (const [name, rules] of more) chains.set(name, rules)
    }
    for (const active of model.activePolicies()) {
      for (const direction of directions) {
        const terms = active.terms[direction]
        if (terms) add(cached(terms, () => policyChains(direction, active, terms)))
        yield
      }
    }
    for (const isolation of model.isolations()) add(cached(isolation, () => new Map([[isolationChain(isolation), isolationRules(isolation)]])))
    const sets = new Map<string, string>()
    const maps = new Map<string, ReadonlyMap<string, string>>()
    for (const group of model.groups()) {
      addGroup(group, sets, maps)
      yield
    }
    addIsolated(model, maps)
    return { frame, chains, sets, maps }
  }
}

function addGroup(group: PeerGroup, sets: Map<string, string>, maps: Map<string, ReadonlyMap<string, string>>): void {
  for (const family of families) {
    const { type } = syntaxes[family]
    sets.set(setName(group, family), group.port ? `{ type ${type} . inet_service; }` : `{ type ${type}; }`)
    maps.set(setName(group, family), group.elements(family))
  }
}

function addIsolated(model: PolicyModel, maps: Map<string, ReadonlyMap<string, string>>): void {
  const self: Record<Family, Map<string, string>> = { v4: new Map(), v6: new Map() }
  for (const direction of directions) {
    const isolated: Record<Family, Map<string, string>> = { v4: new Map(), v6: new Map() }
    for (const [address, isolation] of model.isolated(direction)) {
      const family = familyOf(address)
      isolated[family].set(address, `jump ${isolationChain(isolation)}`)
      self[family].set(`${address} . ${address}`, '')
    }
    for (const family of families) maps.set(`${direction}-${family}`, isolated[family])
  }
  for (const family of families) maps.set(`self-${family}`, self[family])
}

const setName = ({ id, port }: PeerGroup, family: Family) => `${port ? 'ports' : 'pods'}-${id}-${family}`
const isolationChain = ({ direction, id }: Isolation) => `${direction}-pods-${id}`

/** The number keeps names apart that are cut. */
const policyChain = (direction: Direction, { id, policy }: ActivePolicy) => `${direction}-policy-${id}-${policy.key}`

function isolationRules({ direction, policies }: Isolation): string[] {
  return [...policies.map((active) => `jump ${policyChain(direction, active)}`), 'counter drop']
}

/** A rule with peers and ports has a chain for the ports: a rule in the kernel for each pair could be as many as a client's object squared. */
function policyChains(direction: Direction, active: ActivePolicy, terms: readonly Term[]): Chains {
  const rules: string[] = []
  const chains = new Map([[policyChain(direction, active), rules]])
  for (const [i, { peers, ports }] of terms.entries()) {
    const peerTexts = peers && peerMatches(peers, direction)
    const portTexts = ports && portMatches(ports)
    const allow = (matches: readonly string[]) => matches.map((match) => `${match} accept`)
    if (!peerTexts || !portTexts) {
      rules.push(...(peerTexts || portTexts ? allow(peerTexts ?? portTexts ?? []) : ['accept']))
      continue
    }
    const portChain = `${direction}-ports-${active.id}-${i}`
    chains.set(portChain, allow(portTexts))
    for (const match of peerTexts) rules.push(`${match} jump ${portChain}`)
  }
  return chains
}

function peerMatches({ groups, blocks }: TermPeers, direction: Direction): string[] {
  return families.flatMap((family) => {
    const address = `${syntaxes[family].ip} ${direction === 'ingress' ? 'saddr' : 'daddr'}`
    return [...groups.map((group) => `${address} @${setName(group, family)}`), ...blockMatches(blocks[family], family, address)]
  })
}

function blockMatches(ranges: readonly Range<bigint>[], family: Family, address: string): string[] {
  if (ranges.length === 0) return []
  const { nfproto, family: number, last } = syntaxes[family]
  if (ranges.some(({ from, to }) => from === 0n && to === last)) return [`meta nfproto ${nfproto}`]
  return [`${address} { ${ranges.map((range) => rangeText(range, (value) => formatIp({ family: number, value }))).join(', ')} }`]
}

function portMatches({ ranges, groups }: TermPorts): string[] {
  const numbers = [...ranges].map(([protocol, list]) =>
    list.some(isEveryPort) ? `meta l4proto ${protocol}` : `${protocol} dport { ${list.map((range) => rangeText(range, String)).join(', ')} }`,
  )
  const named = groups.flatMap((group) => families.map((family) => `${syntaxes[family].ip} daddr . ${group.port?.protocol} dport @${setName(group, family)}`))
  return [...numbers, ...named]
}

const isEveryPort = ({ from, to }: Range<number>) => from === 0 && to === 65_535
const rangeText = <T extends number | bigint>({ from, to }: Range<T>, text: (value: T) => string) => (from === to ? text(from) : `${text(from)}-${text(to)}`)

/** Replies belong to connections that were allowed. */
const alwaysAllowed = `
		ct state established,related accept
		ip saddr . ip daddr @self-v4 accept
		ip6 saddr . ip6 daddr @self-v6 accept`

const frame = `
	map egress-v4 { type ipv4_addr : verdict; }
	map egress-v6 { type ipv6_addr : verdict; }
	map ingress-v4 { type ipv4_addr : verdict; }
	map ingress-v6 { type ipv6_addr : verdict; }
	set self-v4 { type ipv4_addr . ipv4_addr; }
	set self-v6 { type ipv6_addr . ipv6_addr; }
	chain egress {
		type filter hook forward priority 0; policy accept;${alwaysAllowed}
		ip saddr vmap @egress-v4
		ip6 saddr vmap @egress-v6
	}
	chain ingress {
		type filter hook forward priority 1; policy accept;${alwaysAllowed}
		ip daddr vmap @ingress-v4
		ip6 daddr vmap @ingress-v6
	}
`
