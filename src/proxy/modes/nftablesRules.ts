/**
 * Renders service rules as nftables chains, maps and sets, and the change from one state to the next as a script (L3). Pure.
 * Upstream: pkg/proxy/nftables/proxier.go (v1.36).
 */
import { type ProxyEndpoint, ruleKey, type ServiceRule } from '../model.ts'

export interface TableContents {
  /** Chain → its rules. */
  readonly chains: ReadonlyMap<string, readonly string[]>
  /** Affinity set → its declaration. */
  readonly sets: ReadonlyMap<string, string>
  /** Map → key → verdict. */
  readonly maps: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** Fixed chains and maps that every table has. */
  readonly frame: string
}

const masqueradeMark = '0x4000'

/** All contents that the rules call for. */
export function renderRules(rules: readonly ServiceRule[], clusterCidr: string, serviceCidr: string): TableContents {
  const chains = new Map<string, string[]>()
  const sets = new Map<string, string>()
  const serviceIps = new Map<string, string>()
  const nodePorts = new Map<string, string>()
  const noEndpointServices = new Map<string, string>()
  const noEndpointNodePorts = new Map<string, string>()
  const clusterIps = new Map<string, string>()
  const firewallIps = new Map<string, string>()
  for (const rule of rules) {
    clusterIps.set(rule.clusterIp, '')
    addInternal(rule, { chains, sets, serviceIps, noEndpointServices }, clusterCidr)
    addExternal(rule, { chains, sets, serviceIps, nodePorts, noEndpointServices, noEndpointNodePorts }, clusterCidr)
    addFirewall(rule, chains, firewallIps)
  }
  return {
    chains,
    sets,
    maps: new Map([
      ['service-ips', serviceIps],
      ['service-nodeports', nodePorts],
      ['no-endpoint-services', noEndpointServices],
      ['no-endpoint-nodeports', noEndpointNodePorts],
      ['cluster-ips', clusterIps],
      ['firewall-ips', firewallIps],
    ]),
    frame: frame(serviceCidr),
  }
}

interface InternalTarget {
  chains: Map<string, string[]>
  sets: Map<string, string>
  serviceIps: Map<string, string>
  noEndpointServices: Map<string, string>
}

interface ExternalTarget extends InternalTarget {
  nodePorts: Map<string, string>
  noEndpointNodePorts: Map<string, string>
}

const addressKey = (ip: string, rule: ServiceRule) => `${ip} . ${rule.protocol} . ${rule.port}`

/** Traffic to the cluster IP. */
function addInternal(rule: ServiceRule, target: InternalTarget, clusterCidr: string): void {
  const endpoints = rule.internalPolicyLocal ? rule.localEndpoints : rule.clusterEndpoints
  const key = addressKey(rule.clusterIp, rule)
  if (endpoints.length === 0) {
    // With the Local policy there may be endpoints elsewhere: the client is not told "refused", its packets are dropped.
    target.noEndpointServices.set(key, rule.internalPolicyLocal && rule.clusterEndpoints.length > 0 ? 'drop' : 'goto reject-chain')
    return
  }
  const chain = chainName('service', rule)
  const masquerade = `ip daddr ${rule.clusterIp} ${rule.protocol} dport ${rule.port} ip saddr != ${clusterCidr} jump mark-for-masquerade`
  target.chains.set(chain, [masquerade, ...balance(rule, endpoints, target)])
  target.serviceIps.set(key, `goto ${chain}`)
}

/** Traffic to node ports, external and load balancer addresses. */
function addExternal(rule: ServiceRule, target: ExternalTarget, clusterCidr: string): void {
  if (rule.nodePort === undefined && rule.externalIps.length === 0) return
  const nodePortKey = rule.nodePort === undefined ? undefined : `${rule.protocol} . ${rule.nodePort}`
  if (rule.clusterEndpoints.length === 0 && rule.localEndpoints.length === 0) {
    if (nodePortKey) target.noEndpointNodePorts.set(nodePortKey, 'goto reject-chain')
    for (const ip of rule.externalIps) target.noEndpointServices.set(addressKey(ip, rule), 'goto reject-chain')
    return
  }
  const chain = chainName('external', rule)
  const anywhere = chainName('service-any', rule)
  target.chains.set(anywhere, balance(rule, rule.clusterEndpoints, target))
  if (rule.externalPolicyLocal) {
    const local = chainName('service-local', rule)
    target.chains.set(local, rule.localEndpoints.length > 0 ? balance(rule, rule.localEndpoints, target) : ['drop'])
    // Pods and this node itself may use any endpoint; only the client from outside keeps its address and stays here.
    target.chains.set(chain, [
      `ip saddr ${clusterCidr} goto ${anywhere}`,
      'fib saddr type local jump mark-for-masquerade',
      `fib saddr type local goto ${anywhere}`,
      `goto ${local}`,
    ])
  } else {
    target.chains.set(chain, ['jump mark-for-masquerade', `goto ${anywhere}`])
  }
  if (nodePortKey) target.nodePorts.set(nodePortKey, `goto ${chain}`)
  for (const ip of rule.externalIps) target.serviceIps.set(addressKey(ip, rule), `goto ${chain}`)
}

/** Only clients from the ranges reach the load balancer's addresses. */
function addFirewall(rule: ServiceRule, chains: Map<string, string[]>, firewallIps: Map<string, string>): void {
  if (!rule.sourceRanges || rule.loadBalancerIps.length === 0) return
  const chain = chainName('firewall', rule)
  chains.set(chain, [...rule.sourceRanges.map((range) => `ip saddr ${range} return`), 'drop'])
  for (const ip of rule.loadBalancerIps) firewallIps.set(addressKey(ip, rule), `goto ${chain}`)
}

/** Rules that pick an endpoint: the one the client had before, else one at random. */
function balance(rule: ServiceRule, endpoints: readonly ProxyEndpoint[], target: InternalTarget): string[] {
  const names = endpoints.map((endpoint) => addEndpoint(rule, endpoint, target))
  const sticky = rule.affinitySeconds === undefined ? [] : endpoints.map((endpoint, i) => `ip saddr @${affinitySet(rule, endpoint)} goto ${names[i]}`)
  const choice =
    names.length === 1 ? `goto ${names[0]}` : `numgen random mod ${names.length} vmap { ${names.map((name, i) => `${i} : goto ${name}`).join(', ')} }`
  return [...sticky, choice]
}

function addEndpoint(rule: ServiceRule, endpoint: ProxyEndpoint, target: InternalTarget): string {
  const name = `endpoint-${hash(`${ruleKey(rule)}_${endpoint.ip}:${endpoint.port}`)}-${rule.service}/${rule.protocol}/${rule.portName}__${endpoint.ip}/${endpoint.port}`
  if (target.chains.has(name)) return name
  const lines = [`ip saddr ${endpoint.ip} jump mark-for-masquerade`]
  if (rule.affinitySeconds !== undefined) {
    const set = affinitySet(rule, endpoint)
    target.sets.set(set, `{ type ipv4_addr; flags dynamic,timeout; timeout ${rule.affinitySeconds}s; }`)
    lines.push(`update @${set} { ip saddr }`)
  }
  lines.push(`meta l4proto ${rule.protocol} dnat to ${endpoint.ip}:${endpoint.port}`)
  target.chains.set(name, lines)
  return name
}

function affinitySet(rule: ServiceRule, endpoint: ProxyEndpoint): string {
  return `affinity-${hash(`${ruleKey(rule)}_${endpoint.ip}:${endpoint.port}`)}-${rule.service}/${rule.protocol}/${rule.portName}__${endpoint.ip}/${endpoint.port}`
}

/** `service-ABCDEFGH-namespace/name/tcp/http`: the hash first, because long names are cut. */
function chainName(kind: string, rule: ServiceRule): string {
  return `${kind}-${hash(ruleKey(rule))}-${ruleKey(rule)}`
}

/** Eight base-32 characters of a 40-bit FNV-like hash: short, stable, and enough for the services of one node. */
export function hash(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  let high = 0x811c9dc5
  let low = 0x01000193
  for (let i = 0; i < text.length; i++) {
    high = Math.imul(high ^ text.charCodeAt(i), 0x01000193) >>> 0
    low = Math.imul(low ^ text.charCodeAt(text.length - 1 - i), 0x85ebca6b) >>> 0
  }
  let out = ''
  for (let i = 0; i < 4; i++) out += alphabet[(high >>> (i * 5)) & 31]
  for (let i = 0; i < 4; i++) out += alphabet[(low >>> (i * 5 + 7)) & 31]
  return out
}

/** Chains that hook into the kernel, and the declarations of maps: the same for every set of rules. */
function frame(serviceCidr: string): string {
  return `
	map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
	map service-nodeports { type inet_proto . inet_service : verdict; }
	map no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }
	map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
	set cluster-ips { type ipv4_addr; }
	map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
	chain mark-for-masquerade { mark set mark or ${masqueradeMark}; }
	chain reject-chain {
		meta l4proto tcp reject with tcp reset
		reject
	}
	chain services {
		ip daddr . meta l4proto . th dport vmap @service-ips
		fib daddr type local meta l4proto . th dport vmap @service-nodeports
	}
	chain service-endpoints-check { ip daddr . meta l4proto . th dport vmap @no-endpoint-services; }
	chain nodeport-endpoints-check { fib daddr type local meta l4proto . th dport vmap @no-endpoint-nodeports; }
	chain cluster-ips-check {
		ip daddr @cluster-ips goto reject-chain
		ip daddr ${serviceCidr} drop
	}
	chain firewall-check { ip daddr . meta l4proto . th dport vmap @firewall-ips; }
	chain filter-prerouting {
		type filter hook prerouting priority -110; policy accept;
		ct state new jump firewall-check
		ct state new jump nodeport-endpoints-check
	}
	chain filter-forward {
		type filter hook forward priority -110; policy accept;
		ct state new jump service-endpoints-check
		ct state new jump cluster-ips-check
	}
	chain filter-output {
		type filter hook output priority -90; policy accept;
		ct state new jump service-endpoints-check
		ct state new jump cluster-ips-check
	}
	chain filter-output-before-nat {
		type filter hook output priority -110; policy accept;
		ct state new jump firewall-check
	}
	chain nat-prerouting {
		type nat hook prerouting priority -100; policy accept;
		jump services
	}
	chain nat-output {
		type nat hook output priority -100; policy accept;
		jump services
	}
	chain nat-postrouting {
		type nat hook postrouting priority 100; policy accept;
		mark and ${masqueradeMark} == 0 return
		mark set mark xor ${masqueradeMark}
		masquerade fully-random
	}
`
}

/**
 * The script from `before` to `wanted`; everything when there is no before. Empty when nothing changes. One transaction: additions first,
 * then map elements, then removals, so that nothing refers to what is not there.
 */
export function renderTable(table: string, wanted: TableContents, before: TableContents | undefined): string {
  const lines: string[] = []
  if (!before) lines.push(`add table ${table}`, `delete table ${table}`, `table ${table} {${wanted.frame}}`)
  for (const [name, declaration] of wanted.sets) if (before?.sets.get(name) !== declaration) lines.push(`add set ${table} ${quoted(name)} ${declaration}`)
  // All chains first: rules may jump to any of them.
  const changed = [...wanted.chains].filter(([name, rules]) => !sameLines(before?.chains.get(name), rules))
  for (const [name] of changed) if (!before?.chains.has(name)) lines.push(`add chain ${table} ${quoted(name)}`)
  for (const [name, rules] of changed) {
    if (before?.chains.has(name)) lines.push(`flush chain ${table} ${quoted(name)}`)
    for (const rule of rules) lines.push(`add rule ${table} ${quoted(name)} ${quoteNames(rule)}`)
  }
  for (const [map, elements] of wanted.maps) lines.push(...elementChanges(table, map, elements, before?.maps.get(map)))
  for (const name of before?.chains.keys() ?? []) if (!wanted.chains.has(name)) lines.push(`flush chain ${table} ${quoted(name)}`)
  for (const name of before?.chains.keys() ?? []) if (!wanted.chains.has(name)) lines.push(`delete chain ${table} ${quoted(name)}`)
  for (const name of before?.sets.keys() ?? []) if (!wanted.sets.has(name)) lines.push(`delete set ${table} ${quoted(name)}`)
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

function elementChanges(table: string, map: string, wanted: ReadonlyMap<string, string>, before: ReadonlyMap<string, string> | undefined): string[] {
  const removed = [...(before ?? [])].filter(([key, verdict]) => wanted.get(key) !== verdict).map(([key]) => key)
  const added = [...wanted].filter(([key, verdict]) => before?.get(key) !== verdict)
  const lines: string[] = []
  if (removed.length > 0) lines.push(`delete element ${table} ${map} { ${removed.join(', ')} }`)
  if (added.length > 0)
    lines.push(`add element ${table} ${map} { ${added.map(([key, verdict]) => (verdict ? `${key} : ${quoteNames(verdict)}` : key)).join(', ')} }`)
  return lines
}

function sameLines(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a?.length === b.length && a.every((line, i) => line === b[i])
}

/** Names with slashes are kept within what nft reads as one word; it has no quoting for names, so other characters become '-'. */
function quoted(name: string): string {
  return name.replace(/[^A-Za-z0-9_./-]/g, '-').slice(0, 120)
}

/** The names in goto, jump and @set of a rule. */
function quoteNames(rule: string): string {
  return rule.replace(/(goto |jump |@)(\S+)/g, (_, word: string, name: string) => `${word}${quoted(name.replace(/[,}]$/, ''))}${/[,}]$/.exec(name)?.[0] ?? ''}`)
}
