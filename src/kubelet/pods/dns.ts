/** A pod's name, hosts file and resolver (L3, pure). Upstream: kubelet/network/dns/dns.go, kubelet_pods.go GeneratePodHostNameAndDomain, hostsFileContent (v1.36). */
import type { DnsConfig } from '#grpc/criTypes'
import type { FrozenPod } from './containers.ts'

export interface ResolverSource {
  readonly clusterDNS: readonly string[]
  readonly clusterDomain: string
  /** The text of the node's resolv.conf. */
  readonly resolvConf: string
}

const maxHostnameLength = 63
const maxNameservers = 3
const maxSearches = 32

/** nameserver, search and options lines; the last search line counts. */
function parseResolvConf(text: string): DnsConfig {
  const config: DnsConfig = { servers: [], searches: [], options: [] }
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/)
    if (keyword === 'nameserver' && values[0]) config.servers.push(values[0])
    if (keyword === 'search') config.searches = values.map((value) => (value === '.' ? value : value.replace(/\.$/, '')))
    if (keyword === 'options') config.options.push(...values)
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

/** What goes into the pod's /etc/resolv.conf, by its dnsPolicy. */
export function podDnsConfig(pod: FrozenPod, source: ResolverSource): DnsConfig {
  const host = parseResolvConf(source.resolvConf)
  const policy = pod.spec.dnsPolicy ?? 'ClusterFirst'
  const clusterFirst = policy === 'ClusterFirstWithHostNet' || (policy === 'ClusterFirst' && !pod.spec.hostNetwork)
  let base = host
  if (policy === 'None') base = { servers: [], searches: [], options: [] }
  else if (clusterFirst && source.clusterDNS.length > 0) {
    const domain = source.clusterDomain
    const cluster = domain ? [`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain] : []
    base = { servers: [...source.clusterDNS], searches: unique([...cluster, ...host.searches]), options: mergeOptions(['ndots:5'], []) }
  }
  const own = pod.spec.dnsConfig ?? {}
  return {
    servers: unique([...base.servers, ...(own.nameservers ?? [])]).slice(0, maxNameservers),
    searches: unique([...base.searches, ...(own.searches ?? [])]).slice(0, maxSearches),
    options: mergeOptions(base.options, own.options ?? []),
  }
}

export interface PodHostname {
  readonly hostname: string
  /** Empty without a subdomain. */
  readonly hostDomain: string
}

function podHostname(pod: FrozenPod, clusterDomain: string): PodHostname {
  const { hostnameOverride, hostname, subdomain } = pod.spec
  if (hostnameOverride) return { hostname: hostnameOverride, hostDomain: '' }
  const name = (hostname || (pod.metadata.name ?? '')).slice(0, maxHostnameLength).replace(/[-.]+$/, '')
  return { hostname: name, hostDomain: subdomain ? `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}` : '' }
}

/** The name that the sandbox's UTS namespace gets. */
export function sandboxHostname(pod: FrozenPod, clusterDomain: string): string {
  // A sandbox on the node's network keeps the node's name.
  if (pod.spec.hostNetwork) return ''
  const { hostname, hostDomain } = podHostname(pod, clusterDomain)
  return pod.spec.setHostnameAsFQDN && hostDomain ? `${hostname}.${hostDomain}` : hostname
}

/** The managed /etc/hosts of a pod with its own network, or the node's with the pod's aliases. */
export function hostsFile(pod: FrozenPod, podIPs: readonly string[], clusterDomain: string, nodeHosts: string): string {
  const aliases = (pod.spec.hostAliases ?? []).map(({ ip, hostnames }) => `${ip}\t${(hostnames ?? []).join('\t')}\n`)
  const aliasText = aliases.length > 0 ? `\n# Entries added by HostAliases.\n${aliases.join('')}` : ''
  if (pod.spec.hostNetwork) return `# Kubernetes-managed hosts file (host network).\n${nodeHosts}${aliasText}`
  const { hostname, hostDomain } = podHostname(pod, clusterDomain)
  const names = hostDomain ? `${hostname}.${hostDomain}\t${hostname}` : hostname
  const fixed = [
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'fe00::0\tip6-mcastprefix',
    'fe00::1\tip6-allnodes',
    'fe00::2\tip6-allrouters',
  ]
  const own = podIPs.map((ip) => `${ip}\t${names}`)
  return `# Kubernetes-managed hosts file.\n${[...fixed, ...own].join('\n')}\n${aliasText}`
}
