/** A pod's names and its hosts file (L3, pure). Upstream: kubelet_pods.go GeneratePodHostNameAndDomain, hostsFileContent, util.go GetNodenameForKernel (v1.36). */
import type { FrozenPod } from '../core/containers.ts'

const maxHostnameLength = 63
/** What the kernel keeps of a node name. */
const maxKernelNameLength = 64

export interface PodHostname {
  readonly hostname: string
  /** Empty without a subdomain. */
  readonly hostDomain: string
}

function podHostname(pod: FrozenPod, clusterDomain: string): PodHostname {
  const { hostnameOverride, hostname, subdomain } = pod.spec
  const name = (hostnameOverride ?? (hostname || (pod.metadata.name ?? ''))).slice(0, maxHostnameLength).replace(/[-.]+$/, '')
  if (hostnameOverride) return { hostname: name, hostDomain: '' }
  return { hostname: name, hostDomain: subdomain ? `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}` : '' }
}

/** The name that the sandbox's UTS namespace gets. @throws when its full form is longer than the kernel takes. */
export function sandboxHostname(pod: FrozenPod, clusterDomain: string): string {
  // A sandbox on the node's network keeps the node's name.
  if (pod.spec.hostNetwork) return ''
  const { hostname, hostDomain } = podHostname(pod, clusterDomain)
  if (!pod.spec.setHostnameAsFQDN || !hostDomain) return hostname
  const full = `${hostname}.${hostDomain}`
  if (full.length > maxKernelNameLength) {
    const lengths = `${maxKernelNameLength} characters is the max, ${full.length} characters requested`
    throw new Error(`failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long (${lengths})`)
  }
  return full
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
