/** Baseline: no capabilities beyond those that runtimes give anyway (L1, pure). Upstream: policy/check_capabilities_baseline.go. */
import { type CheckPod, type Control, containersOf, distinct, named, quoted } from '../control.ts'

const allowed: ReadonlySet<string> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
])

const check: CheckPod = (_metadata, spec) => {
  const added = containersOf(spec).map(({ name, securityContext }) => ({
    name,
    bad: (securityContext?.capabilities?.add ?? []).filter((one) => !allowed.has(one)),
  }))
  const bad = added.filter((one) => one.bad.length > 0)
  if (bad.length === 0) return undefined
  const names = bad.map(({ name }) => name)
  const capabilities = distinct(bad.flatMap((one) => one.bad))
  return {
    reason: 'non-default capabilities',
    detail: `${named('container', names)} must not include ${quoted(capabilities)} in securityContext.capabilities.add`,
  }
}

export const capabilitiesBaseline: Control = { id: 'capabilities_baseline', level: 'baseline', revisions: [{ since: 0, check }] }
