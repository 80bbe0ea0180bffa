/** Baseline: the host's network, processes and IPC are not shared (L1, pure). Upstream: policy/check_hostNamespaces.go. */
import type { CheckPod, Control } from '../control.ts'

const fields = ['hostNetwork', 'hostPID', 'hostIPC'] as const

const check: CheckPod = (_metadata, spec) => {
  const shared = fields.filter((field) => spec[field])
  return shared.length > 0 ? { reason: 'host namespaces', detail: shared.map((field) => `${field}=true`).join(', ') } : undefined
}

export const hostNamespaces: Control = { id: 'hostNamespaces', level: 'baseline', revisions: [{ since: 0, check }] }
