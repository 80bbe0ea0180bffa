/**
 * Services in nftables (L3): verdict maps lead from address, protocol and port to a chain per service port, and from there to a chain per endpoint.
 * One table per address family. Names and structure follow upstream's, so that knowledge of them applies here. Upstream: pkg/proxy/nftables (v1.36).
 */
import type { ServiceRuleText } from '#api/debug/nodeNetwork'
import { hostPort } from '#api/machinery/ip'
import { check, type Exec, ExecError } from '#host/exec'
import { createNftTable, nftHash, nftName, nftObstacle, type TableContents } from '#host/nftables'
import { atOnce, inTimeSlices } from '#host/timeSlices'
import { applyModels } from '../applyModels.ts'
import { createNftablesMetrics } from '../metrics.ts'
import { type Family, type FamilyModel, type ProxyEndpoint, ruleKey, type ServiceRule } from '../model.ts'
import type { ProxyMode } from './mode.ts'

const tableName = 'kube-proxy'
const tableFamilies = { IPv4: 'ip', IPv6: 'ip6' } as const

export const nftables: ProxyMode = {
  name: 'nftables',
  obstacle: (exec, family) => nftObstacle(exec, tableFamilies[family]),
  run: (deps, models, signal) => {
    const turns = { next: () => deps.clock.turn() }
    const tables = { IPv4: createNftTable(deps.exec, 'ip', tableName, turns), IPv6: createNftTable(deps.exec, 'ip6', tableName, turns) }
    const rendered: RenderedRules = { IPv4: new WeakMap(), IPv6: new WeakMap() }
    const { failures } = createNftablesMetrics(deps.metrics, deps.families ?? [])
    const apply = async (model: FamilyModel) => {
      const contents = await inTimeSlices(renderSteps(model, rendered), turns)
      await tables[model.family].apply(contents).catch((error: unknown) => {
        failures.inc({ ip_family: model.family })
        throw error
      })
    }
    return applyModels(apply, deps, models, signal)
  },
  rulesOf,
  cleanUp: async (exec) => {
    for (const family of await tableFamiliesOf(exec)) await createNftTable(exec, family, tableName).remove()
  },
}

/** The families that have a table of ours. Without nft there is none. */
async function tableFamiliesOf(exec: Exec): Promise<('ip' | 'ip6')[]> {
  if ((await nftObstacle(exec, 'ip')) !== undefined) return []
  const listed = (await check(exec, 'nft', ['list', 'tables'])).split('\n')
  return (['ip', 'ip6'] as const).filter((family) => listed.includes(`table ${family} ${tableName}`))
}

/** More than a Service of ordinary size has. Each is one call of nft. */
const mostShown = 64
/** A set of all cluster IPs: it leads nowhere. */
const unshownMap = 'cluster-ips'

async function rulesOf(exec: Exec, model: FamilyModel): Promise<readonly ServiceRuleText[]> {
  const table = [tableFamilies[model.family], tableName] as const
  const { chains, maps } = renderServices(model)
  const elements = [...maps].flatMap(([map, keys]) => (map === unshownMap ? [] : [...keys.keys()].map((key) => [map, key] as const)))
  const wanted = [
    ...elements.map(([map, key]) => ({ place: `${map} ${key}`, args: ['get', 'element', ...table, map, `{ ${key} }`] })),
    // A chain is rendered after those that it leads to.
    ...[...chains.keys()].reverse().map((chain) => ({ place: nftName(chain), args: ['list', 'chain', ...table, nftName(chain)] })),
  ]
  const found: ServiceRuleText[] = []
  for (const { place, args } of wanted.slice(0, mostShown)) {
    const result = await exec.run('nft', args)
    if (result.code !== 0 && !result.stderr.includes('No such file or directory')) throw new ExecError('nft', args, result)
    found.push(result.code === 0 ? { place, ...readRule(result.stdout) } : { place })
  }
  return found
}

/** The lines between the braces of the table and of the chain or map, without the types of a map. */
function readRule(listed: string): Pick<ServiceRuleText, 'lines' | 'connections'> {
  const lines = listed
    .split('\n')
    .slice(2, -3)
    .filter((line) => !line.startsWith('\t\ttype '))
  const counted = /counter packets (\d+)/.exec(listed)?.[1]
  return { lines: lines.map((line) => line.trim()), ...(counted === undefined ? {} : { connections: Number(counted) }) }
}

/** What differs between the families in nft's syntax. */
interface Syntax {
  readonly ip: 'ip' | 'ip6'
  readonly addressType: 'ipv4_addr' | 'ipv6_addr'
  /** Precedes a match of node ports. */
  readonly nodePortAddresses: string
}

const syntaxes: Readonly<Record<Family, Syntax>> = {
  IPv4: {
    ip: 'ip',
    addressType: 'ipv4_addr',
    nodePortAddresses: 'fib daddr type local',
  },
  IPv6: {
    ip: 'ip6',
    addressType: 'ipv6_addr',
    // The kernel drops a packet from ::1 that leaves the node, and IPv6 has no route_localnet to allow it.
    nodePortAddresses: 'fib daddr type local ip6 daddr != ::1',
  },
}

const masqueradeMark = '0x4000'

/** What rules add to a family's table. */
interface Contents {
  readonly chains: Map<string, string[]>
  readonly sets: Map<string, string>
  readonly serviceIps: Map<string, string>
  readonly nodePorts: Map<string, string>
  readonly noEndpointServices: Map<string, string>
  readonly noEndpointNodePorts: Map<string, string>
  readonly clusterIps: Map<string, string>
  readonly firewallIps: Map<string, string>
}

/** The contents that one rule adds, while they grow. */
interface Tables extends Contents {
  readonly syntax: Syntax
  /** Ranges of pods: traffic from elsewhere to a cluster address is masqueraded, traffic between pods is not. */
  readonly clusterCidrs: readonly string[]
  readonly masqueradeAll: boolean
}

/** What each rule added last time. The rule of a Service that has not changed is the same object from model to model. */
type RenderedRules = Readonly<Record<Family, WeakMap<ServiceRule, { readonly clusterCidrs: string; readonly contents: Contents }>>>

const emptyContents = (): Contents => ({
  chains: new Map(),
  sets: new Map(),
  serviceIps: new Map(),
  nodePorts: new Map(),
  noEndpointServices: new Map(),
  noEndpointNodePorts: new Map(),
  clusterIps: new Map(),
  firewallIps: new Map(),
})

/** The table's contents for the model of one family. */
export function renderServices(model: FamilyModel): TableContents {
  return atOnce(renderSteps(model, { IPv4: new WeakMap(), IPv6: new WeakMap() }))
}

/** A step for each rule. */
export function* renderSteps(model: FamilyModel, rendered: RenderedRules): Generator<undefined, TableContents> {
  const { family, rules, clusterCidrs, serviceCidrs, nodePortCidrs, masqueradeAll = false } = model
  const target = emptyContents()
  const known = rendered[family]
  for (const rule of rules) {
    const before = known.get(rule)
    const contents =
      before?.clusterCidrs === clusterCidrs.join() ? before.contents : renderRule(rule, { syntax: syntaxes[family], clusterCidrs, masqueradeAll })
    if (contents !== before?.contents) known.set(rule, { clusterCidrs: clusterCidrs.join(), contents })
    addAll(contents, target)
    yield
  }
  return {
    chains: target.chains,
    sets: target.sets,
    maps: new Map([
      ['service-ips', target.serviceIps],
      ['service-nodeports', target.nodePorts],
      ['no-endpoint-services', target.noEndpointServices],
      ['no-endpoint-nodeports', target.noEndpointNodePorts],
      ['cluster-ips', target.clusterIps],
      ['firewall-ips', target.firewallIps],
    ]),
    frame: frame(syntaxes[family], serviceCidrs, nodePortMatches(syntaxes[family], nodePortCidrs)),
  }
}

/** Matches of packets to node ports: to every local address, or to those in the ranges. Ranges may overlap, which one set would refuse. */
function nodePortMatches({ ip, nodePortAddresses }: Syntax, ranges: readonly string[] | undefined): string[] {
  return ranges ? ranges.map((range) => `${nodePortAddresses} ${ip} daddr ${range}`) : [nodePortAddresses]
}

function renderRule(rule: ServiceRule, options: Pick<Tables, 'syntax' | 'clusterCidrs' | 'masqueradeAll'>): Contents {
  const target: Tables = { ...emptyContents(), ...options }
  target.clusterIps.set(rule.clusterIp, '')
  addInternal(rule, target)
  addExternal(rule, target)
  addFirewall(rule, target)
  return target
}

function addAll(contents: Contents, target: Contents): void {
  for (const [name, rules] of contents.chains) target.chains.set(name, rules)
  for (const kind of ['sets', 'serviceIps', 'nodePorts', 'noEndpointServices', 'noEndpointNodePorts', 'clusterIps', 'firewallIps'] as const)
    for (const [key, value] of contents[kind]) target[kind].set(key, value)
}

const addressKey = (ip: string, rule: ServiceRule) => `${ip} . ${rule.protocol} . ${rule.port}`

/** Traffic to the cluster IP. */
function addInternal(rule: ServiceRule, target: Tables): void {
  const { syntax, clusterCidrs, masqueradeAll } = target
  const endpoints = rule.internalPolicyLocal ? rule.localEndpoints : rule.clusterEndpoints
  const key = addressKey(rule.clusterIp, rule)
  if (endpoints.length === 0) {
    // With the Local policy another node may have endpoints: the packets are dropped, not rejected.
    target.noEndpointServices.set(key, rule.internalPolicyLocal && rule.clusterEndpoints.length > 0 ? 'drop' : 'goto reject-chain')
    return
  }
  const chain = chainName('service', rule)
  const fromElsewhere = masqueradeAll ? '' : clusterCidrs.map((range) => `${syntax.ip} saddr != ${range} `).join('')
  const masquerade = `${syntax.ip} daddr ${rule.clusterIp} ${rule.protocol} dport ${rule.port} ${fromElsewhere}jump mark-for-masquerade`
  // Without a range of pods the proxy cannot recognize pods: no traffic is masqueraded, as upstream.
  target.chains.set(chain, [...(masqueradeAll || clusterCidrs.length > 0 ? [masquerade] : []), ...balance(rule, endpoints, target)])
  target.serviceIps.set(key, `goto ${chain}`)
}

/** Traffic to node ports, external and load balancer addresses. */
function addExternal(rule: ServiceRule, target: Tables): void {
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
    // Pods and this node itself may use any endpoint; only a client from outside keeps its address and gets endpoints of this node.
    target.chains.set(chain, [
      ...target.clusterCidrs.map((range) => `${target.syntax.ip} saddr ${range} goto ${anywhere}`),
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
function addFirewall(rule: ServiceRule, { syntax, chains, firewallIps }: Tables): void {
  if (!rule.sourceRanges || rule.loadBalancerIps.length === 0) return
  const chain = chainName('firewall', rule)
  chains.set(chain, [...rule.sourceRanges.map((range) => `${syntax.ip} saddr ${range} return`), 'drop'])
  for (const ip of rule.loadBalancerIps) firewallIps.set(addressKey(ip, rule), `goto ${chain}`)
}

/** Rules that pick an endpoint: the one the client had before, else one at random. */
function balance(rule: ServiceRule, endpoints: readonly ProxyEndpoint[], target: Tables): string[] {
  const { ip } = target.syntax
  const names = endpoints.map((endpoint) => addEndpoint(rule, endpoint, target))
  const sticky = rule.affinitySeconds === undefined ? [] : endpoints.map((endpoint, i) => `${ip} saddr @${affinitySet(rule, endpoint)} goto ${names[i]}`)
  const choice =
    names.length === 1 ? `goto ${names[0]}` : `numgen random mod ${names.length} vmap { ${names.map((name, i) => `${i} : goto ${name}`).join(', ')} }`
  return [...sticky, choice]
}

function addEndpoint(rule: ServiceRule, endpoint: ProxyEndpoint, { syntax, chains, sets }: Tables): string {
  const name = `endpoint-${endpointName(rule, endpoint)}`
  if (chains.has(name)) return name
  const lines = [`${syntax.ip} saddr ${endpoint.ip} jump mark-for-masquerade`]
  if (rule.affinitySeconds !== undefined) {
    const set = affinitySet(rule, endpoint)
    sets.set(set, `{ type ${syntax.addressType}; flags dynamic,timeout; timeout ${rule.affinitySeconds}s; }`)
    lines.push(`update @${set} { ${syntax.ip} saddr }`)
  }
  lines.push(`meta l4proto ${rule.protocol} counter dnat to ${hostPort(endpoint.ip, endpoint.port)}`)
  chains.set(name, lines)
  return name
}

function affinitySet(rule: ServiceRule, endpoint: ProxyEndpoint): string {
  return `affinity-${endpointName(rule, endpoint)}`
}

/** The hash first, because long names are cut. */
function endpointName(rule: ServiceRule, { ip, port }: ProxyEndpoint): string {
  return `${nftHash(`${ruleKey(rule)}_${ip}:${port}`)}-${rule.service}/${rule.protocol}/${rule.portName}__${ip}/${port}`
}

/** `service-ABCDEFGH-namespace/name/tcp/http`. */
function chainName(kind: string, rule: ServiceRule): string {
  return `${kind}-${nftHash(ruleKey(rule))}-${ruleKey(rule)}`
}

/** Chains that hook into the kernel, and the declarations of maps: the same for every set of rules. */
function frame({ ip, addressType }: Syntax, serviceCidrs: readonly string[], nodePorts: readonly string[]): string {
  return `
	map service-ips { type ${addressType} . inet_proto . inet_service : verdict; }
	map service-nodeports { type inet_proto . inet_service : verdict; }
	map no-endpoint-services { type ${addressType} . inet_proto . inet_service : verdict; }
	map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
	set cluster-ips { type ${addressType}; }
	map firewall-ips { type ${addressType} . inet_proto . inet_service : verdict; }
	chain mark-for-masquerade { mark set mark or ${masqueradeMark}; }
	chain reject-chain {
		meta l4proto tcp reject with tcp reset
		reject
	}
	chain services {
		${ip} daddr . meta l4proto . th dport vmap @service-ips
		${nodePorts.map((match) => `${match} meta l4proto . th dport vmap @service-nodeports`).join('\n\t\t')}
	}
	chain service-endpoints-check { ${ip} daddr . meta l4proto . th dport vmap @no-endpoint-services; }
	chain nodeport-endpoints-check {
		${nodePorts.map((match) => `${match} meta l4proto . th dport vmap @no-endpoint-nodeports`).join('\n\t\t')}
	}
	chain cluster-ips-check {
		${ip} daddr @cluster-ips goto reject-chain
		${serviceCidrs.map((range) => `${ip} daddr ${range} drop`).join('\n\t\t')}
	}
	chain firewall-check { ${ip} daddr . meta l4proto . th dport vmap @firewall-ips; }
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
