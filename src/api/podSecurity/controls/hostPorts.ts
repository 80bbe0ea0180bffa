/** Baseline: no port of the host is taken (L1, pure). Upstream: policy/check_hostPorts.go. */
import { type CheckPod, type Control, containersOf, distinct, named, plural } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const taking = containersOf(spec)
    .map(({ name, ports = [] }) => ({ name, taken: ports.filter(({ hostPort }) => hostPort).map(({ hostPort }) => String(hostPort)) }))
    .filter(({ taken }) => taken.length > 0)
  if (taking.length === 0) return undefined
  const names = taking.map(({ name }) => name)
  const ports = distinct(taking.flatMap(({ taken }) => taken))
  const verb = names.length === 1 ? 'uses' : 'use'
  return { reason: 'hostPort', detail: `${named('container', names)} ${verb} ${plural('hostPort', ports.length)} ${ports.join(', ')}` }
}

export const hostPorts: Control = { id: 'hostPorts', level: 'baseline', revisions: [{ since: 0, check }] }
