/** Restricted: containers must say that they are not root's (L1, pure). Upstream: policy/check_runAsNonRoot.go. */
import { type CheckPod, type Control, exceptUserNamespaces, named, namesWhere, setters } from '../control.ts'

const reason = 'runAsNonRoot != true'

const check: CheckPod = (_metadata, spec) => {
  const ofPod = spec.securityContext?.runAsNonRoot
  const explicit = namesWhere(spec, ({ securityContext }) => securityContext?.runAsNonRoot === false)
  const who = setters(ofPod === false, explicit)
  if (who !== '') return { reason, detail: `${who} must not set securityContext.runAsNonRoot=false` }
  if (ofPod) return undefined
  const silent = namesWhere(spec, ({ securityContext }) => securityContext?.runAsNonRoot === undefined)
  return silent.length > 0 ? { reason, detail: `pod or ${named('container', silent)} must set securityContext.runAsNonRoot=true` } : undefined
}

export const runAsNonRoot: Control = {
  id: 'runAsNonRoot',
  level: 'restricted',
  revisions: [
    { since: 0, check },
    { since: 35, check: exceptUserNamespaces(check) },
  ],
}
