/** Baseline: no container is a process of a Windows host (L1, pure). Upstream: policy/check_windowsHostProcess.go. */
import { type CheckPod, type Control, namesWhere, setters } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const bad = namesWhere(spec, ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true)
  const who = setters(spec.securityContext?.windowsOptions?.hostProcess === true, bad)
  return who === '' ? undefined : { reason: 'hostProcess', detail: `${who} must not set securityContext.windowsOptions.hostProcess=true` }
}

export const windowsHostProcess: Control = { id: 'windowsHostProcess', level: 'baseline', revisions: [{ since: 0, check }] }
