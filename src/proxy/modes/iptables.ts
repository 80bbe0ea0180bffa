/**
 * Services in iptables (L3), in upstream's chains, with upstream's names, comments and order of rules, so that knowledge and tools for them apply here:
 * KUBE-SERVICES leads from an address to a KUBE-SVC- (every endpoint), KUBE-SVL- (endpoints of this node) or KUBE-EXT- chain (external addresses), and these to
 * a KUBE-SEP- chain per endpoint. Unlike nftables, an unknown port of a cluster IP is not refused. Upstream: pkg/proxy/iptables (v1.36).
 */
import { createHash } from 'node:crypto'
import type { ServiceRuleText } from '#api/debug/nodeNetwork'
import { hostPort } from '#api/machinery/ip'
import { base32 } from '#base/base32'
import type { Exec } from '#host/exec'
import {
  type ChainOwner,
  type ChainsByTable,
  countedRules,
  createOwnChains,
  iptablesObstacle,
  type Jump,
  type OwnChains,
  type Restored,
  removeOwnChains,
} from '#host/iptables'
import { atOnce, inTimeSlices } from '#host/timeSlices'
import { applyModels } from '../applyModels.ts'
import { createIptablesMetrics } from '../metrics.ts'
import type { Family, FamilyModel, ProxyEndpoint, ServiceRule } from '../model.ts'
import type { ProxyMode, ProxyModeDeps } from './mode.ts'

const families = ['IPv4', 'IPv6'] as const

export const iptables = {
  name: 'iptables',
  obstacle: iptablesObstacle,
  prepare: allowLocalhostNodePorts,
  run: async (deps, models, signal) => {
    const { exec } = deps
    await allowLocalhostNodePorts(deps)
    const options = { isTcpLiberal: await isTcpLiberal(exec) }
    const turns = { next: () => deps.clock.turn() }
    const measured = measuring(deps)
    const chainsOf = (family: Family) => createOwnChains(exec, family, owner, turns, (restored) => measured.restored(family, restored))
    const chains = { IPv4: chainsOf('IPv4'), IPv6: chainsOf('IPv6') }
    const apply = (model: FamilyModel) =>
      measured.apply(model.family, async () => {
        const wanted = await inTimeSlices(renderSteps(model, options), turns)
        await chains[model.family].apply(wanted)
        return wanted
      })
    await Promise.all([applyModels(apply, deps, models, signal), keepChains(Object.values(chains), deps, signal)])
  },
  rulesOf,
  cleanUp: async (exec) => {
    await Promise.all(families.map((family) => removeOwnChains(exec, family, owner)))
  },
} satisfies ProxyMode

const tables = ['filter', 'nat'] as const

/** Counts what iptables-restore writes, and how long whole and partial changes take. */
function measuring({ clock, metrics, families: served = [] }: ProxyModeDeps) {
  const own = createIptablesMetrics(metrics, served)
  const newest = new Map<Family, Restored>()
  return {
    restored: (ip_family: Family, one: Restored) => {
      newest.set(ip_family, one)
      if (one.failed) (one.isFull ? own.failures : own.partialFailures).inc({ ip_family })
      else for (const table of tables) own.written.set(one.written.get(table) ?? 0, { ip_family, table })
    },
    apply: async (ip_family: Family, work: () => Promise<ChainsByTable>) => {
      const startedMs = clock.monotonicMs()
      newest.delete(ip_family)
      const wanted = await work()
      // Nothing differed.
      if (!newest.has(ip_family)) for (const table of tables) own.written.set(0, { ip_family, table })
      const seconds = newest.get(ip_family)?.isFull ? own.fullSeconds : own.partialSeconds
      seconds.observe((clock.monotonicMs() - startedMs) / 1000, { ip_family })
      for (const table of tables) {
        const count = [...(wanted.get(table)?.values() ?? [])].reduce((sum, rules) => sum + rules.length, 0)
        own.rules.set(count, { ip_family, table })
      }
    },
  }
}

const checkMs = 30_000
/** One an hour. */
const checksPerRewrite = 120

/** Writes the rules again after another program flushed the tables, and each hour in case single rules are missing. Upstream: Monitor and FullSyncPeriod. */
async function keepChains(all: readonly OwnChains[], { clock, log }: ProxyModeDeps, signal: AbortSignal): Promise<void> {
  for (let i = 1; ; i++) {
    await clock.sleep(checkMs, signal).catch(() => {})
    if (signal.aborted) return
    for (const chains of all) {
      const kept = i % checksPerRewrite === 0 ? chains.rewrite() : chains.repair()
      await kept.catch((error) => log.error(error, 'Failed to write service rules again'))
    }
  }
}

/** Packets from 127.0.0.1 may leave through another interface: node ports on localhost need it. The chain KUBE-FIREWALL removes the danger of the setting. */
async function allowLocalhostNodePorts({ exec, log }: Pick<ProxyModeDeps, 'exec' | 'log'>): Promise<void> {
  const { code, stderr } = await exec.run('tee', ['/proc/sys/net/ipv4/conf/all/route_localnet'], { input: '1' })
  if (code !== 0) log.warn('Node ports do not answer on localhost: route_localnet could not be set', { error: stderr.trim() })
}

/** The kernel then regards fewer packets as INVALID, and they must not be dropped. */
async function isTcpLiberal(exec: Exec): Promise<boolean> {
  const { stdout } = await exec.run('cat', ['/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal'])
  return stdout.trim() === '1'
}

/** More than a Service of ordinary size has. */
const mostShown = 64
/** The order in which a packet passes the chains of a Service. */
const chainOrder = ['FW', 'EXT', 'SVC', 'SVL', 'SEP'].map((kind) => `KUBE-${kind}-`)

interface WantedPlace {
  readonly table: 'filter' | 'nat'
  readonly chain: string
  /** A rule in a chain of all Services, as wanted. Absent: the whole chain is of the Service. */
  readonly rule?: string | undefined
}

async function rulesOf(exec: Exec, model: FamilyModel): Promise<readonly ServiceRuleText[]> {
  const wanted = renderChains(model, { isTcpLiberal: false })
  const names = [...new Set(model.rules.map(portNameOf))]
  const isOfServices = (rule: string) => names.some((name) => [`"${name} `, `"${name}"`, `--comment ${name} `].some((part) => rule.includes(part)))
  const shown = (['nat', 'filter'] as const).flatMap((table) => placesIn(table, wanted.get(table) ?? new Map(), isOfServices)).slice(0, mostShown)
  const whole = new Set(shown.filter(({ rule }) => rule === undefined).map(keyOfPlace))
  const shared = new Set(shown.filter(({ rule }) => rule !== undefined).map(keyOfPlace))
  const isShown = (table: string, chain: string, text: string) => {
    const key = keyOfPlace({ table, chain })
    return whole.has(key) || (shared.has(key) && isOfServices(text))
  }
  const kernel = await countedRules(exec, model.family, ['nat', 'filter'], isShown)
  return shown.map(({ table, chain, rule }) => {
    const there = kernel.get(keyOfPlace({ table, chain })) ?? []
    const found = rule === undefined ? there : there.filter(({ text }) => aimOf(text) === aimOf(rule))
    const place = keyOfPlace({ table, chain })
    if (found.length === 0) return { place: rule === undefined ? place : `${place} ${rule}` }
    const onward = found.filter(({ target }) => target !== '' && target !== 'KUBE-MARK-MASQ')
    return { place, lines: found.map(({ text }) => text), connections: onward.reduce((sum, { packets }) => sum + packets, 0) }
  })
}

const keyOfPlace = ({ table, chain }: { readonly table: string; readonly chain: string }) => `${table} ${chain}`

/** An entry for each chain of the Services, and for each of their rules in the chains of all. */
function placesIn(table: WantedPlace['table'], chains: ReadonlyMap<string, readonly string[]>, isOfServices: (rule: string) => boolean): WantedPlace[] {
  const rank = (chain: string) => chainOrder.findIndex((start) => chain.startsWith(start))
  return [...chains]
    .sort(([a], [b]) => rank(a) - rank(b))
    .flatMap(([chain, rules]) => (rank(chain) >= 0 ? [{ table, chain }] : rules.filter(isOfServices).map((rule) => ({ table, chain, rule }))))
}

/** What tells rules of a Service in one chain apart. The kernel shows the parts of a rule in another order, and an address as a range. */
function aimOf(rule: string): string {
  const parts = [/--comment ("[^"]*"|\S+)/, / -p (\S+)/, / -d (\S+?)(?:\/32|\/128)?(?= |$)/, / --dport (\S+)/, / -j (\S+)/]
  return parts.map((part) => (part.exec(rule)?.[1] ?? '').replaceAll('"', '')).join(' ')
}

const canary = 'KUBE-PROXY-CANARY'
const fixedChains: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-POSTROUTING',
  'KUBE-MARK-MASQ',
  'KUBE-FORWARD',
  'KUBE-PROXY-FIREWALL',
  canary,
])

const ofNew = '-m conntrack --ctstate NEW '
const jump = (table: 'filter' | 'nat', from: string, to: string, comment: string, match = ''): Jump => ({
  ...{ table, from, to },
  match: comment && `${match}-m comment --comment "${comment}"`,
})

/** In upstream's order, which inserts each before those that precede it here. */
const jumps: readonly Jump[] = [
  jump('filter', 'INPUT', 'KUBE-EXTERNAL-SERVICES', 'kubernetes externally-visible service portals', ofNew),
  jump('filter', 'FORWARD', 'KUBE-EXTERNAL-SERVICES', 'kubernetes externally-visible service portals', ofNew),
  jump('filter', 'INPUT', 'KUBE-NODEPORTS', 'kubernetes health check service ports'),
  jump('filter', 'FORWARD', 'KUBE-SERVICES', 'kubernetes service portals', ofNew),
  jump('filter', 'OUTPUT', 'KUBE-SERVICES', 'kubernetes service portals', ofNew),
  jump('filter', 'FORWARD', 'KUBE-FORWARD', 'kubernetes forwarding rules'),
  jump('filter', 'INPUT', 'KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall', ofNew),
  jump('filter', 'OUTPUT', 'KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall', ofNew),
  jump('filter', 'FORWARD', 'KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall', ofNew),
  jump('nat', 'OUTPUT', 'KUBE-SERVICES', 'kubernetes service portals'),
  jump('nat', 'PREROUTING', 'KUBE-SERVICES', 'kubernetes service portals'),
  jump('nat', 'POSTROUTING', 'KUBE-POSTROUTING', 'kubernetes postrouting rules'),
  jump('filter', 'INPUT', 'KUBE-FIREWALL', ''),
  jump('filter', 'OUTPUT', 'KUBE-FIREWALL', ''),
]

/** KUBE-FIREWALL is not removed, because a kubelet of upstream has it, too, and route_localnet stays on. */
const owner: ChainOwner = { jumps, canary, owns: (chain) => fixedChains.has(chain) || /^KUBE-(SVC|SVL|EXT|FW|SEP)-/.test(chain) }

const mark = '0x004000'
/** With more endpoints, the rules of endpoints have no comments, which would be almost half of the text. */
const mostCommented = 1000

/** A family's chains, while they grow rule by rule. */
interface Target {
  readonly filter: Map<string, string[]>
  readonly nat: Map<string, string[]>
  /** Where pods get addresses from. Without it the proxy cannot recognize pods: no traffic to cluster IPs is masqueraded. */
  readonly podRange: string | undefined
  readonly masqueradeAll: boolean
  readonly isCommented: boolean
}

/** The chains for the model of one family. */
export function renderChains(model: FamilyModel, options: RenderOptions): ChainsByTable {
  return atOnce(renderSteps(model, options))
}

interface RenderOptions {
  readonly isTcpLiberal: boolean
}

function* renderSteps(model: FamilyModel, { isTcpLiberal }: RenderOptions): Generator<undefined, ChainsByTable> {
  const { rules, clusterCidrs, masqueradeAll = false } = model
  const target: Target = {
    filter: emptyChains('KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL', 'KUBE-FIREWALL', canary),
    nat: emptyChains('KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ', canary),
    podRange: clusterCidrs[0],
    masqueradeAll,
    isCommented: rules.reduce((sum, rule) => sum + rule.clusterEndpoints.length, 0) <= mostCommented,
  }
  for (const rule of rules) {
    addService(plan(rule), target)
    yield
  }
  addFrame(model, target, isTcpLiberal)
  return new Map([
    ['filter', target.filter],
    ['nat', target.nat],
    ['mangle', emptyChains(canary)],
  ])
}

function emptyChains(...names: readonly string[]): Map<string, string[]> {
  return new Map(names.map((name) => [name, []]))
}

function add(chains: Map<string, string[]>, chain: string, ...rules: readonly string[]): void {
  const present = chains.get(chain)
  if (present) present.push(...rules)
  else chains.set(chain, [...rules])
}

/** The rules that do not depend on Services. */
function addFrame({ family, nodePortCidrs }: FamilyModel, { filter, nat }: Target, isTcpLiberal: boolean): void {
  const isIpv4 = family === 'IPv4'
  // The kernel drops a packet from ::1 that leaves the node.
  const nodeAddresses = `-m addrtype --dst-type LOCAL${isIpv4 ? '' : ' ! -d ::1/128'}`
  const nodePorts = '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"'
  // A rule takes one -d; with a range that holds ::1, the kernel drops its packets later.
  const matches = nodePortCidrs ? nodePortCidrs.map((range) => `-m addrtype --dst-type LOCAL -d ${range}`) : [nodeAddresses]
  add(nat, 'KUBE-SERVICES', ...matches.map((match) => `${nodePorts} ${match} -j KUBE-NODEPORTS`))
  add(
    nat,
    'KUBE-POSTROUTING',
    `-m mark ! --mark ${mark}/${mark} -j RETURN`,
    `-j MARK --xor-mark ${mark}`,
    '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
  )
  add(nat, 'KUBE-MARK-MASQ', `-j MARK --or-mark ${mark}`)
  if (isIpv4)
    add(
      filter,
      'KUBE-FIREWALL',
      '-m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
    )
  if (!isTcpLiberal) add(filter, 'KUBE-FORWARD', '-m conntrack --ctstate INVALID -j DROP')
  add(
    filter,
    'KUBE-FORWARD',
    `-m comment --comment "kubernetes forwarding rules" -m mark --mark ${mark}/${mark} -j ACCEPT`,
    '-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  )
}

/** What the rules of one service port are made from. */
interface Plan {
  readonly rule: ServiceRule
  /** `namespace/name:port`, as upstream writes a port's name. */
  readonly name: string
  /** Chains: every endpoint, endpoints of this node, external traffic, source ranges. */
  readonly cluster: string
  readonly local: string
  readonly external: string
  readonly firewall: string
  /** By the endpoint's address, those that this node's traffic may use. */
  readonly endpoints: ReadonlyMap<string, PlannedEndpoint>
  readonly hasEndpoints: boolean
  readonly hasInternalEndpoints: boolean
  readonly hasExternalEndpoints: boolean
  readonly usesFirewall: boolean
}

interface PlannedEndpoint {
  readonly ip: string
  readonly chain: string
}

function plan(rule: ServiceRule): Plan {
  const name = portNameOf(rule)
  const hash = hashOf(name + rule.protocol)
  const hasEndpoints = rule.clusterEndpoints.length + rule.localEndpoints.length > 0
  const hasLocal = rule.localEndpoints.length > 0
  return {
    ...{ rule, name, hasEndpoints },
    endpoints: new Map(
      reachableEndpoints(rule).map((endpoint) => {
        const address = hostPort(endpoint.ip, endpoint.port)
        return [address, { ip: endpoint.ip, chain: `KUBE-SEP-${hashOf(name + rule.protocol + address)}` }]
      }),
    ),
    ...{ cluster: `KUBE-SVC-${hash}`, local: `KUBE-SVL-${hash}`, external: `KUBE-EXT-${hash}`, firewall: `KUBE-FW-${hash}` },
    hasInternalEndpoints: hasEndpoints && (!rule.internalPolicyLocal || hasLocal),
    hasExternalEndpoints: hasEndpoints && (!rule.externalPolicyLocal || hasLocal),
    usesFirewall: hasEndpoints && rule.loadBalancerIps.length > 0 && rule.sourceRanges !== undefined,
  }
}

function portNameOf({ service, portName }: ServiceRule): string {
  return portName ? `${service}:${portName}` : service
}

function hashOf(text: string): string {
  return base32(createHash('sha256').update(text).digest().subarray(0, 10)).toUpperCase()
}

function addService(service: Plan, target: Target): void {
  addCapture(service, target)
  if (service.hasInternalEndpoints) addInternal(service, target)
  if (service.hasEndpoints && isExternal(service.rule)) addExternal(service, target)
  if (service.usesFirewall) addFirewall(service, target)
  const { rule, cluster, local } = service
  if (usesCluster(rule) && rule.clusterEndpoints.length > 0) addBalance(service, cluster, rule.clusterEndpoints, target)
  if (usesLocal(rule) && rule.localEndpoints.length > 0) addBalance(service, local, rule.localEndpoints, target)
  for (const [address, endpoint] of service.endpoints) addEndpoint(service, address, endpoint, target)
}

const isExternal = ({ nodePort, externalIps }: ServiceRule) => nodePort !== undefined || externalIps.length > 0
/** Pods use every endpoint of an external address, also with the Local policy. */
const usesCluster = (rule: ServiceRule) => !rule.internalPolicyLocal || isExternal(rule)
const usesLocal = (rule: ServiceRule) => rule.internalPolicyLocal || (rule.externalPolicyLocal && isExternal(rule))

/** The endpoints that this node's traffic may use; some may be in it twice. */
function reachableEndpoints(rule: ServiceRule): ProxyEndpoint[] {
  return [...(usesCluster(rule) ? rule.clusterEndpoints : []), ...(usesLocal(rule) ? rule.localEndpoints : [])]
}

/** The rules that recognize the service's addresses: jumps to its chains, and refusals where no endpoint can serve. */
function addCapture(service: Plan, { filter, nat }: Target): void {
  const { rule, name, hasEndpoints } = service
  const noEndpoints = hasEndpoints ? `"${name} has no local endpoints"` : `"${name} has no endpoints"`
  const verdict = hasEndpoints ? 'DROP' : 'REJECT'
  const internalChain = rule.internalPolicyLocal ? service.local : service.cluster
  if (service.hasInternalEndpoints) add(nat, 'KUBE-SERVICES', `${toAddress(`"${name} cluster IP"`, rule, rule.clusterIp)} -j ${internalChain}`)
  else add(filter, 'KUBE-SERVICES', `${toAddress(noEndpoints, rule, rule.clusterIp)} -j ${verdict}`)
  const balanced = new Set(rule.loadBalancerIps)
  for (const ip of [...rule.externalIps.filter((one) => !balanced.has(one)), ...rule.loadBalancerIps]) {
    const isBalanced = balanced.has(ip)
    const comment = `"${name} ${isBalanced ? 'loadbalancer' : 'external'} IP"`
    const guarded = isBalanced && service.usesFirewall
    if (hasEndpoints) add(nat, 'KUBE-SERVICES', `${toAddress(comment, rule, ip)} -j ${guarded ? service.firewall : service.external}`)
    if (guarded) add(filter, 'KUBE-PROXY-FIREWALL', `${toAddress(`"${name} traffic not accepted by ${service.firewall}"`, rule, ip)} -j DROP`)
    if (!service.hasExternalEndpoints) add(filter, 'KUBE-EXTERNAL-SERVICES', `${toAddress(noEndpoints, rule, ip)} -j ${verdict}`)
  }
  const { protocol, nodePort, healthCheckNodePort } = rule
  if (healthCheckNodePort !== undefined)
    add(filter, 'KUBE-NODEPORTS', `-m comment --comment "${name} health check node port" -m tcp -p tcp --dport ${healthCheckNodePort} -j ACCEPT`)
  if (nodePort === undefined) return
  const toNodePort = `-m ${protocol} -p ${protocol} --dport ${nodePort}`
  if (hasEndpoints) add(nat, 'KUBE-NODEPORTS', `-m comment --comment ${name} ${toNodePort} -j ${service.external}`)
  if (!service.hasExternalEndpoints)
    add(filter, 'KUBE-EXTERNAL-SERVICES', `-m comment --comment ${noEndpoints} -m addrtype --dst-type LOCAL ${toNodePort} -j ${verdict}`)
}

function toAddress(comment: string, { protocol, port }: ServiceRule, ip: string): string {
  return `-m comment --comment ${comment} -m ${protocol} -p ${protocol} -d ${ip} --dport ${port}`
}

/** A client that is no pod, such as one that routes the range of cluster IPs to this node, gets the answer through this node. */
function addInternal({ rule, name, cluster, local }: Plan, { nat, podRange, masqueradeAll }: Target): void {
  const chain = rule.internalPolicyLocal ? local : cluster
  const from = masqueradeAll ? '' : ` ! -s ${podRange}`
  add(nat, chain, ...(masqueradeAll || podRange ? [`${toAddress(`"${name} cluster IP"`, rule, rule.clusterIp)}${from} -j KUBE-MARK-MASQ`] : []))
}

/** Traffic to node ports, external and load balancer addresses. */
function addExternal({ rule, name, cluster, local, external, hasExternalEndpoints }: Plan, { nat, podRange }: Target): void {
  const traffic = `traffic for ${name} external destinations"`
  if (rule.externalPolicyLocal) {
    // Pods and this node itself may use any endpoint; only a client from outside keeps its address and gets endpoints of this node.
    if (podRange) add(nat, external, `-m comment --comment "pod ${traffic} -s ${podRange} -j ${cluster}`)
    add(nat, external, `-m comment --comment "masquerade LOCAL ${traffic} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ`)
    add(nat, external, `-m comment --comment "route LOCAL ${traffic} -m addrtype --src-type LOCAL -j ${cluster}`)
  } else add(nat, external, `-m comment --comment "masquerade ${traffic} -j KUBE-MARK-MASQ`)
  if (hasExternalEndpoints) add(nat, external, `-j ${rule.externalPolicyLocal ? local : cluster}`)
}

/** Only clients from the ranges reach the load balancer's addresses. What leaves this chain is dropped by KUBE-PROXY-FIREWALL. */
function addFirewall({ rule, name, external, firewall }: Plan, { nat }: Target): void {
  const comment = `-m comment --comment "${name} loadbalancer IP"`
  add(
    nat,
    firewall,
    ...(rule.sourceRanges ?? []).map((range) => `${comment} -s ${range} -j ${external}`),
    `-m comment --comment "other traffic to ${name} will be dropped by KUBE-PROXY-FIREWALL"`,
  )
}

/** Rules that pick an endpoint: the one the client had before, else one at random. */
function addBalance({ rule, name, endpoints }: Plan, chain: string, chosen: readonly ProxyEndpoint[], { nat, isCommented }: Target): void {
  const choices = chosen.map((endpoint) => {
    const address = hostPort(endpoint.ip, endpoint.port)
    return { to: endpoints.get(address)?.chain, comment: isCommented ? `-m comment --comment "${name} -> ${address}" ` : '' }
  })
  if (rule.affinitySeconds !== undefined)
    for (const { to, comment } of choices) add(nat, chain, `${comment}-m recent --name ${to} --rcheck --seconds ${rule.affinitySeconds} --reap -j ${to}`)
  // A packet that reaches the rule of an endpoint goes to it or to one of those that follow, each as likely.
  for (const [i, { to, comment }] of choices.entries()) {
    const left = choices.length - i
    const chance = left > 1 ? `-m statistic --mode random --probability ${(1 / left).toFixed(10)} ` : ''
    add(nat, chain, `${comment}${chance}-j ${to}`)
  }
}

function addEndpoint({ rule, name }: Plan, address: string, { ip, chain }: PlannedEndpoint, { nat, isCommented }: Target): void {
  const comment = isCommented ? `-m comment --comment ${name} ` : ''
  const remember = rule.affinitySeconds === undefined ? '' : `-m recent --name ${chain} --set `
  add(
    nat,
    chain,
    // A pod that reaches itself through the service would answer itself directly.
    `${comment}-s ${ip} -j KUBE-MARK-MASQ`,
    `${comment}${remember}-m ${rule.protocol} -p ${rule.protocol} -j DNAT --to-destination ${address}`,
  )
}
