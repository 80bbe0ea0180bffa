/** Baseline: nothing of the host's files is mounted (L1, pure). Upstream: policy/check_hostPathVolumes.go. */
import { type CheckPod, type Control, named } from '../control.ts'

const check: CheckPod = (_metadata, { volumes = [] }) => {
  const bad = volumes.filter(({ hostPath }) => hostPath).map(({ name }) => name)
  return bad.length > 0 ? { reason: 'hostPath volumes', detail: named('volume', bad) } : undefined
}

export const hostPathVolumes: Control = { id: 'hostPathVolumes', level: 'baseline', revisions: [{ since: 0, check }] }
