/** Computes a pod's /etc/resolv.conf (L3, pure). Upstream: kubelet/network/dns/dns.go, pkg/apis/core/validation limits (v1.36). */
import type { DnsConfig } from '#grpc/criTypes'
import type { FrozenPod } from '../core/containers.ts'

export interface ResolverSource {
  readonly nodeIPs: readonly string[]
  readonly clusterDNS: readonly string[]
  readonly clusterDomain: string
  /** The text of the node's resolv.conf; empty: the node has none, and pods with the node's resolver resolve no names. */
  readonly resolvConf: string
}

/** A warning that is recorded as an event. */
export interface ResolverWarning {
  readonly reason: 'DNSConfigForming' | 'MissingClusterDNS'
  readonly message: string
}

export interface PodResolver {
  readonly config: DnsConfig
  readonly warnings: readonly ResolverWarning[]
}

const maxNameservers = 3
const maxSearches = 32
const maxSearchLength = 253
const maxSearchLineLength = 2048

/** nameserver lines add up; of search and of options the last line counts. */
function parseResolvConf(text: string): DnsConfig {
  const config: DnsConfig = { servers: [], searches: [], options: [] }
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/)
    if (keyword === 'nameserver' && values[0]) config.servers.push(values[0])
    if (keyword === 'search') config.searches = values.map((value) => (value === '.' ? value : value.replace(/\.$/, '')))
    if (keyword === 'options') config.options = values
  }
  return config
}

const unique = (values: readonly string[]) => [...new Set(values)]

/** An option given twice (`ndots:5`, `ndots:2`) counts as given last. */
function mergeOptions(options: readonly string[], more: readonly { readonly name?: string | undefined; readonly value?: string | undefined }[]): string[] {
  const byName = new Map(options.map((option) => [option.split(':')[0] ?? '', option]))
  for (const { name = '', value } of more) byName.set(name, value === undefined || value === '' ? name : `${name}:${value}`)
  return [...byName.values()]
}

/** The node's own resolver; without one, an address at which no name server runs. */
function nodeResolver({ resolvConf, nodeIPs }: ResolverSource): DnsConfig {
  if (resolvConf) return parseResolvConf(resolvConf)
  const servers = nodeIPs.map((ip) => (ip.includes(':') ? '::1' : '127.0.0.1'))
  return { servers: servers.length > 0 ? servers : ['127.0.0.1'], searches: ['.'], options: [] }
}

function wantsClusterDns({ spec: { dnsPolicy = 'ClusterFirst', hostNetwork } }: FrozenPod): boolean {
  return dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && !hostNetwork)
}

/** What goes into the pod's /etc/resolv.conf, by its dnsPolicy, and what was left out. */
export function podResolver(pod: FrozenPod, source: ResolverSource): PodResolver {
  const { metadata, spec } = pod
  const warnings: ResolverWarning[] = []
  const base = () => {
    if (spec.dnsPolicy === 'None') return { servers: [], searches: [], options: [] }
    if (!wantsClusterDns(pod)) return nodeResolver(source)
    if (source.clusterDNS.length === 0) {
      const what = 'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.'
      warnings.push({ reason: 'MissingClusterDNS', message: `pod: "${metadata.name}_${metadata.namespace}(${metadata.uid})". ${what}` })
      return nodeResolver(source)
    }
    const domain = source.clusterDomain
    const cluster = domain ? [`${metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain] : []
    return { servers: source.clusterDNS, searches: [...cluster, ...parseResolvConf(source.resolvConf).searches], options: ['ndots:5'] }
  }
  const { servers, searches, options } = base()
  const own = spec.dnsConfig ?? {}
  const config = {
    servers: fittingServers(unique([...servers, ...(own.nameservers ?? [])]), warnings),
    searches: fittingSearches(unique([...searches, ...(own.searches ?? [])]), warnings),
    options: mergeOptions(options, own.options ?? []),
  }
  return { config, warnings }
}

function fittingServers(servers: readonly string[], warnings: ResolverWarning[]): string[] {
  const kept = servers.slice(0, maxNameservers)
  if (kept.length < servers.length) {
    const message = `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${kept.join(' ')}`
    warnings.push({ reason: 'DNSConfigForming', message })
  }
  return kept
}

function fittingSearches(searches: readonly string[], warnings: ResolverWarning[]): string[] {
  const kept = searches.slice(0, maxSearches).filter((search) => search.length <= maxSearchLength)
  while (kept.join(' ').length > maxSearchLineLength) kept.pop()
  if (kept.length < searches.length) {
    const message = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${kept.join(' ')}`
    warnings.push({ reason: 'DNSConfigForming', message })
  }
  return kept
}
