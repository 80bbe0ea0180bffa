/** Restricted: no process gets more privileges than its parent (L1, pure). Upstream: policy/check_allowPrivilegeEscalation.go. */
import { type CheckPod, type Control, exceptWindows, named, namesWhere } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const bad = namesWhere(spec, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
  if (bad.length === 0) return undefined
  return { reason: 'allowPrivilegeEscalation != false', detail: `${named('container', bad)} must set securityContext.allowPrivilegeEscalation=false` }
}

export const allowPrivilegeEscalation: Control = {
  id: 'allowPrivilegeEscalation',
  level: 'restricted',
  revisions: [
    { since: 8, check },
    { since: 25, check: exceptWindows(check) },
  ],
}
