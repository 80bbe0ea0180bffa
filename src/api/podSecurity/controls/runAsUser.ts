/** Restricted: no part of the pod asks for user 0 (L1, pure). Upstream: policy/check_runAsUser.go. */
import { type CheckPod, type Control, exceptUserNamespaces, namesWhere, setters } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const bad = namesWhere(spec, ({ securityContext }) => securityContext?.runAsUser === 0)
  const who = setters(spec.securityContext?.runAsUser === 0, bad)
  return who === '' ? undefined : { reason: 'runAsUser=0', detail: `${who} must not set runAsUser=0` }
}

export const runAsUser: Control = {
  id: 'runAsUser',
  level: 'restricted',
  revisions: [
    { since: 23, check },
    { since: 35, check: exceptUserNamespaces(check) },
  ],
}
