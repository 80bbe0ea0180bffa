/** Baseline: only kernel parameters that are isolated to the pod (L1, pure). Upstream: policy/check_sysctls.go. */
import type { CheckPod, Control } from '../control.ts'

/** What each version of the standards added. */
const added: readonly { readonly since: number; readonly names: readonly string[] }[] = [
  {
    since: 0,
    names: [
      'kernel.shm_rmid_forced',
      'net.ipv4.ip_local_port_range',
      'net.ipv4.tcp_syncookies',
      'net.ipv4.ping_group_range',
      'net.ipv4.ip_unprivileged_port_start',
    ],
  },
  { since: 27, names: ['net.ipv4.ip_local_reserved_ports'] },
  {
    since: 29,
    names: ['net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl', 'net.ipv4.tcp_keepalive_probes'],
  },
  { since: 32, names: ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'] },
]

function allowing(names: ReadonlySet<string>): CheckPod {
  return (_metadata, { securityContext }) => {
    const bad = (securityContext?.sysctls ?? []).map(({ name }) => name).filter((name) => !names.has(name))
    return bad.length > 0 ? { reason: 'forbidden sysctls', detail: bad.join(', ') } : undefined
  }
}

export const sysctls: Control = {
  id: 'sysctls',
  level: 'baseline',
  revisions: added.map(({ since }, at) => ({ since, check: allowing(new Set(added.slice(0, at + 1).flatMap(({ names }) => names))) })),
}
