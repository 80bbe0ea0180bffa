/** Baseline: no container is privileged (L1, pure). Upstream: policy/check_privileged.go. */
import { type CheckPod, type Control, named, namesWhere } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const bad = namesWhere(spec, ({ securityContext }) => securityContext?.privileged === true)
  return bad.length > 0 ? { reason: 'privileged', detail: `${named('container', bad)} must not set securityContext.privileged=true` } : undefined
}

export const privileged: Control = { id: 'privileged', level: 'baseline', revisions: [{ since: 0, check }] }
