/**
 * /proc is masked (L1, pure): in baseline, since v1.35, outside of user namespaces; in restricted always.
 * Upstream: policy/check_procMount_{baseline,restricted}.go.
 */
import { type AnyContainer, type CheckPod, type Control, containersOf, distinct, exceptUserNamespaces, named, quoted } from '../control.ts'

const procMountOf = ({ securityContext }: AnyContainer) => securityContext?.procMount

const check: CheckPod = (_metadata, spec) => {
  const bad = containersOf(spec).filter((container) => (procMountOf(container) ?? 'Default') !== 'Default')
  if (bad.length === 0) return undefined
  const names = bad.map(({ name }) => name)
  const types = distinct(bad.map((container) => procMountOf(container) ?? ''))
  return { reason: 'procMount', detail: `${named('container', names)} must not set securityContext.procMount to ${quoted(types)}` }
}

export const procMountBaseline: Control = {
  id: 'procMount',
  level: 'baseline',
  revisions: [
    { since: 0, check },
    { since: 35, check: exceptUserNamespaces(check) },
  ],
}

export const procMountRestricted: Control = {
  id: 'procMount_restricted',
  level: 'restricted',
  revisions: [{ since: 35, check, overrides: ['procMount'] }],
}
