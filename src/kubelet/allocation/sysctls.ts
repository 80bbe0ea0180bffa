/**
 * Which kernel settings a pod may have for itself (L3, pure): the safe ones, those the node's administrator allows, none that would reach the host.
 * Upstream: kubelet/sysctl/{allowlist,safe_sysctls}.go, component-helpers/node/util/sysctl/namespace.go (v1.36).
 */
import type { FrozenPod } from '../core/containers.ts'

type Namespace = 'ipc' | 'net'

/** Separate for each pod, and without influence on others. Kernels since 4.15 know them all. */
const safeSysctls = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
] as const

/** The name with dots as separators, from either way of writing it. */
export function dottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0]
  return first === '/' ? name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/')) : name
}

function namespaceOf(name: string): Namespace | undefined {
  if (name === 'kernel.sem' || /^(kernel\.shm|kernel\.msg|fs\.mqueue\.)/.test(name)) return 'ipc'
  return name.startsWith('net.') ? 'net' : undefined
}

/** Why the pod may not have one of the settings it asks for; undefined: it may have them all. */
export function forbiddenSysctl(pod: FrozenPod, allowedUnsafe: readonly string[]): string | undefined {
  const allowed = [...safeSysctls, ...allowedUnsafe.map(dottedSysctl)]
  for (const { name: written } of pod.spec.securityContext?.sysctls ?? []) {
    const name = dottedSysctl(written)
    const pattern = allowed.find((candidate) => (candidate.endsWith('*') ? name.startsWith(candidate.slice(0, -1)) : candidate === name))
    if (pattern === undefined) return `forbidden sysctl: "${name}" not allowlisted`
    const namespace = namespaceOf(pattern)
    const shared = (namespace === 'ipc' && pod.spec.hostIPC) || (namespace === 'net' && pod.spec.hostNetwork)
    if (shared) return `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`
  }
  return undefined
}

/** @throws Error that names the pattern that the kernel does not keep apart for each pod. */
export function checkAllowedSysctls(patterns: readonly string[]): void {
  for (const pattern of patterns) {
    if (!/^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/.test(pattern) || pattern.length > 253)
      throw new Error(`invalid configuration: allowedUnsafeSysctls has "${pattern}": use a sysctl's name, or its beginning and '*'`)
    if (!namespaceOf(dottedSysctl(pattern)))
      throw new Error(`invalid configuration: allowedUnsafeSysctls has "${pattern}": the sysctls "${pattern}" are not known to be namespaced`)
  }
}
