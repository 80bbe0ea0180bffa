/**
 * What IPVS, the sets of addresses and iptables hold for a model (L3, pure). Names follow upstream's, so that ipvsadm, ipset and iptables-save show what people
 * know. Upstream: pkg/proxy/ipvs (v1.36).
 */
import { hostPort, isIpv6 } from '#api/machinery/ip'
import type { ChainOwner, ChainsByTable, Jump } from '#host/iptables'
import type { Family, FamilyModel, ProxyEndpoint, ServiceRule } from '../../model.ts'

const scheduler = 'rr'

/** Upstream's sets, with their types. */
export const setTypes = {
  'KUBE-LOOP-BACK': 'hash:ip,port,ip',
  'KUBE-CLUSTER-IP': 'hash:ip,port',
  'KUBE-EXTERNAL-IP': 'hash:ip,port',
  'KUBE-EXTERNAL-IP-LOCAL': 'hash:ip,port',
  'KUBE-LOAD-BALANCER-FW': 'hash:ip,port',
  'KUBE-LOAD-BALANCER-SOURCE-CIDR': 'hash:ip,port,net',
  'KUBE-NODE-PORT-TCP': 'bitmap:port',
  'KUBE-NODE-PORT-LOCAL-TCP': 'bitmap:port',
  'KUBE-NODE-PORT-UDP': 'bitmap:port',
  'KUBE-NODE-PORT-LOCAL-UDP': 'bitmap:port',
} as const
type SetName = keyof typeof setTypes

/** Names are unique in a kernel, whatever the family. */
export const setName = (family: Family, name: string) => (family === 'IPv6' ? name.replace('KUBE-', 'KUBE-6-').slice(0, longestSetName) : name)
const longestSetName = 31
/** The most entries of each set. The kernel's default is 65,536. */
const mostEntries = 1 << 20
/** A set while it is filled. */
export const nextSet = 'KUBE-NEXT'

/** A virtual server with its endpoints, as `ipvsadm --save` writes them. */
export type VirtualServers = ReadonlyMap<string, readonly string[]>

export interface RenderedIpvs {
  readonly servers: VirtualServers
  readonly sets: ReadonlyMap<SetName, readonly string[]>
  readonly addresses: readonly string[]
  readonly chains: ChainsByTable
}

/** What IPVS, the sets and the rules of one family hold. A node port is a virtual server of the mark that a rule gives its packets. */
export function renderIpvs({ family, rules, clusterCidrs, masqueradeAll }: FamilyModel): RenderedIpvs {
  const servers = new Map<string, readonly string[]>()
  const sets = new Map((Object.keys(setTypes) as SetName[]).map((name) => [name, [] as string[]]))
  const addresses = new Set<string>()
  const put = (name: SetName, ...entries: readonly string[]) => sets.get(name)?.push(...entries)
  for (const rule of rules) {
    const { protocol, port, clusterIp, externalIps, nodePort } = rule
    const entry = (ip: string) => `${ip},${protocol}:${port}`
    const external = rule.externalPolicyLocal ? rule.localEndpoints : rule.clusterEndpoints
    const serve = (ip: string, endpoints: readonly ProxyEndpoint[], at = port) => {
      servers.set(
        serverOf(rule, family, ip, at),
        endpoints.map((endpoint) => `${hostPort(endpoint.ip, endpoint.port)} --masquerading --weight 1`),
      )
    }
    serve(clusterIp, rule.internalPolicyLocal ? rule.localEndpoints : rule.clusterEndpoints)
    put('KUBE-CLUSTER-IP', entry(clusterIp))
    for (const ip of [clusterIp, ...externalIps]) addresses.add(ip)
    for (const ip of externalIps) {
      serve(ip, external)
      put(rule.externalPolicyLocal ? 'KUBE-EXTERNAL-IP-LOCAL' : 'KUBE-EXTERNAL-IP', entry(ip))
    }
    if (rule.sourceRanges) {
      for (const ip of rule.loadBalancerIps) {
        put('KUBE-LOAD-BALANCER-FW', entry(ip))
        put('KUBE-LOAD-BALANCER-SOURCE-CIDR', ...rule.sourceRanges.flatMap(storable).map((range) => `${entry(ip)},${range}`))
      }
    }
    if (nodePort !== undefined && protocol !== 'sctp') {
      serve(anyAddress[family], external, nodePort)
      put(`KUBE-NODE-PORT-${rule.externalPolicyLocal ? 'LOCAL-' : ''}${protocol === 'udp' ? 'UDP' : 'TCP'}`, String(nodePort))
    }
    for (const { ip, port: to } of rule.clusterEndpoints.filter(({ isLocal }) => isLocal)) put('KUBE-LOOP-BACK', `${ip},${protocol}:${to},${ip}`)
  }
  return { servers, sets, addresses: [...addresses], chains: chainsOf(family, masqueradeAll ? 'all' : clusterCidrs[0]) }
}

/** A set of the kernel stores no range of all addresses. */
function storable(range: string): string[] {
  if (!range.endsWith('/0')) return [range]
  return isIpv6(range.slice(0, -'/0'.length)) ? ['::/1', '8000::/1'] : ['0.0.0.0/1', '128.0.0.0/1']
}

/** Stands for every address of the node: `onNode` makes a virtual server for each. */
const anyAddress = { IPv4: '0.0.0.0', IPv6: '::' } as const

function serverOf({ protocol, affinitySeconds }: ServiceRule, family: Family, ip: string, port: number): string {
  const kind = { tcp: '--tcp-service', udp: '--udp-service', sctp: '--sctp-service' }[protocol]
  const sticky = affinitySeconds === undefined ? '' : ` --persistent ${affinitySeconds}${family === 'IPv6' ? ' --netmask 128' : ''}`
  return `${kind} ${hostPort(ip, port)} --scheduler ${scheduler}${sticky}`
}

/** Entries that are there already stay: an element that vanishes for a moment would let packets pass without their mark. */
export function setCommands(family: Family, sets: RenderedIpvs['sets']): string[] {
  const own = family === 'IPv6' ? ' family inet6' : ''
  return [...sets].flatMap(([name, entries]) => {
    const type = setTypes[name]
    const options = type === 'bitmap:port' ? ' range 0-65535' : `${own} maxelem ${mostEntries}`
    const there = setName(family, name)
    return [
      `create ${there} ${type}${options}`,
      `create ${nextSet} ${type}${options}`,
      ...entries.map((entry) => `add ${nextSet} ${entry}`),
      `swap ${nextSet} ${there}`,
      `destroy ${nextSet}`,
    ]
  })
}

const mark = '0x00004000'
const canary = 'KUBE-IPVS-CANARY'
const ownNames = ['KUBE-SERVICES', 'KUBE-NODE-PORT', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ', 'KUBE-PROXY-FIREWALL', 'KUBE-SOURCE-RANGES-FIREWALL', canary]
const jump = (table: Jump['table'], from: string, to: string): Jump => ({ table, from, to, match: '' })
export const owner: ChainOwner = {
  jumps: [
    jump('nat', 'OUTPUT', 'KUBE-SERVICES'),
    jump('nat', 'PREROUTING', 'KUBE-SERVICES'),
    jump('nat', 'POSTROUTING', 'KUBE-POSTROUTING'),
    jump('filter', 'INPUT', 'KUBE-PROXY-FIREWALL'),
  ],
  canary,
  owns: (chain) => ownNames.includes(chain),
}

/** The same for every set of Services: what differs is in the sets. @param podRange whose traffic to cluster IPs is not masqueraded; `all`: every source is; undefined: none is */
function chainsOf(family: Family, podRange: string | undefined): ChainsByTable {
  const inSet = (name: SetName, fields: string) => `-m set --match-set ${setName(family, name)} ${fields}`
  const nat = new Map([
    [
      'KUBE-SERVICES',
      [
        `-s ${family === 'IPv6' ? '::1/128' : '127.0.0.0/8'} -j RETURN`,
        ...(podRange ? [`${inSet('KUBE-CLUSTER-IP', 'dst,dst')}${podRange === 'all' ? '' : ` ! -s ${podRange}`} -j KUBE-MARK-MASQ`] : []),
        `${inSet('KUBE-EXTERNAL-IP', 'dst,dst')} -j KUBE-MARK-MASQ`,
        '-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT',
      ],
    ],
    [
      'KUBE-NODE-PORT',
      (['tcp', 'udp'] as const).flatMap((protocol) => [
        `-p ${protocol} ${inSet(protocol === 'tcp' ? 'KUBE-NODE-PORT-LOCAL-TCP' : 'KUBE-NODE-PORT-LOCAL-UDP', 'dst')} -j RETURN`,
        `-p ${protocol} ${inSet(protocol === 'tcp' ? 'KUBE-NODE-PORT-TCP' : 'KUBE-NODE-PORT-UDP', 'dst')} -j KUBE-MARK-MASQ`,
      ]),
    ],
    ['KUBE-MARK-MASQ', [`-j MARK --or-mark ${mark}`]],
    [
      'KUBE-POSTROUTING',
      [
        `${inSet('KUBE-LOOP-BACK', 'dst,dst,src')} -j MASQUERADE`,
        `-m mark ! --mark ${mark}/${mark} -j RETURN`,
        `-j MARK --xor-mark ${mark}`,
        '-j MASQUERADE --random-fully',
      ],
    ],
  ])
  const filter = new Map([
    ['KUBE-PROXY-FIREWALL', [`${inSet('KUBE-LOAD-BALANCER-FW', 'dst,dst')} -j KUBE-SOURCE-RANGES-FIREWALL`]],
    ['KUBE-SOURCE-RANGES-FIREWALL', [`${inSet('KUBE-LOAD-BALANCER-SOURCE-CIDR', 'dst,dst,src')} -j RETURN`, '-j DROP']],
  ])
  return new Map<Jump['table'], ReadonlyMap<string, readonly string[]>>([
    ['nat', nat],
    ['filter', filter],
    ['mangle', new Map([[canary, []]])],
  ])
}

/** Lines for `ipvsadm --restore` that lead from one set of virtual servers to the other. */
export function serverChanges(before: VirtualServers, wanted: VirtualServers): string[] {
  // A server's scheduler and persistence are changed in place.
  const keyOf = (server: string) => server.split(' ').slice(0, 2).join(' ')
  const had = new Map([...before].map(([server, endpoints]) => [keyOf(server), { server, endpoints }]))
  const kept = new Set([...wanted.keys()].map(keyOf))
  const placeOf = (endpoint: string) => endpoint.split(' ')[0] ?? ''
  const changes = [...wanted].flatMap(([server, endpoints]) => {
    const key = keyOf(server)
    const there = had.get(key)
    const places = new Set((there?.endpoints ?? []).map(placeOf))
    const now = new Set(endpoints.map(placeOf))
    return [
      ...(there?.server === server ? [] : [`${there ? '--edit-service' : '--add-service'} ${server}`]),
      ...endpoints.filter((one) => !places.has(placeOf(one))).map((one) => `--add-server ${key} --real-server ${one}`),
      ...[...places].filter((place) => !now.has(place)).map((place) => `--delete-server ${key} --real-server ${place}`),
    ]
  })
  return [...changes, ...[...had.keys()].filter((key) => !kept.has(key)).map((key) => `--delete-service ${key}`)]
}

const longKinds: ReadonlyMap<string, string> = new Map([
  ['-t', '--tcp-service'],
  ['-u', '--udp-service'],
  ['--sctp-service', '--sctp-service'],
])

/** Reads `ipvsadm --save --numeric`, in its short form. */
export function parseServers(text: string, family: Family): VirtualServers {
  const servers = new Map<string, string[]>()
  const names = new Map<string, string>()
  for (const line of text.split('\n')) {
    const words = line.trim().split(/\s+/)
    const [command, kind = '', place = '', ...rest] = words
    const longKind = longKinds.get(kind)
    if (longKind === undefined || place.startsWith('[') !== (family === 'IPv6')) continue
    const after = (flag: string) => (rest.includes(flag) ? rest[rest.indexOf(flag) + 1] : undefined)
    const key = `${longKind} ${place}`
    if (command === '-A') {
      const sticky = after('-p') === undefined ? '' : ` --persistent ${after('-p')}${family === 'IPv6' ? ' --netmask 128' : ''}`
      names.set(key, `${key} --scheduler ${after('-s')}${sticky}`)
      servers.set(names.get(key) ?? key, [])
    } else if (command === '-a') servers.get(names.get(key) ?? key)?.push(`${after('-r')} --masquerading --weight ${after('-w')}`)
  }
  return servers
}

/** A virtual server of node ports, on each address of the node. */
export function onNode(server: string, own: readonly string[], family: Family): string[] {
  const any = hostPort(anyAddress[family], 0).slice(0, -1)
  const [kind, place = ''] = server.split(' ')
  if (!place.startsWith(any)) return [server]
  return own.map((ip) => server.replace(`${kind} ${place}`, `${kind} ${hostPort(ip, Number(place.slice(any.length)))}`))
}
