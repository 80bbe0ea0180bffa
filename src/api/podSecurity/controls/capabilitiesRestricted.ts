/** Restricted: all capabilities are dropped, and only binding to low ports comes back (L1, pure). Upstream: policy/check_capabilities_restricted.go. */
import { type CheckPod, type Control, containersOf, distinct, exceptWindows, named, namesWhere, quoted } from '../control.ts'

const check: CheckPod = (_metadata, spec) => {
  const keeping = namesWhere(spec, ({ securityContext }) => !securityContext?.capabilities?.drop?.includes('ALL'))
  const adding = containersOf(spec)
    .map(({ name, securityContext }) => ({ name, bad: (securityContext?.capabilities?.add ?? []).filter((one) => one !== 'NET_BIND_SERVICE') }))
    .filter(({ bad }) => bad.length > 0)
  const details: string[] = []
  if (keeping.length > 0) details.push(`${named('container', keeping)} must set securityContext.capabilities.drop=["ALL"]`)
  if (adding.length > 0) {
    const names = adding.map(({ name }) => name)
    const capabilities = distinct(adding.flatMap(({ bad }) => bad))
    details.push(`${named('container', names)} must not include ${quoted(capabilities)} in securityContext.capabilities.add`)
  }
  return details.length > 0 ? { reason: 'unrestricted capabilities', detail: details.join('; ') } : undefined
}

const overrides = ['capabilities_baseline']

export const capabilitiesRestricted: Control = {
  id: 'capabilities_restricted',
  level: 'restricted',
  revisions: [
    { since: 22, check, overrides },
    { since: 25, check: exceptWindows(check), overrides },
  ],
}
