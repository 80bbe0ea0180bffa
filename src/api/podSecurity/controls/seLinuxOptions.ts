/** Baseline: SELinux types are those of containers, and user and role are left alone (L1, pure). Upstream: policy/check_seLinuxOptions.go. */
import type { SELinuxOptions } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type CheckPod, type Control, containersOf, distinct, named, setters } from '../control.ts'

const first = ['', 'container_t', 'container_init_t', 'container_kvm_t']

function allowing(types: readonly string[]): CheckPod {
  const isBad = ({ type = '', user, role }: Frozen<SELinuxOptions> = {}) => !types.includes(type) || !!user || !!role
  return (_metadata, spec) => {
    const ofPod = spec.securityContext?.seLinuxOptions
    const bad = containersOf(spec).filter(({ securityContext }) => isBad(securityContext?.seLinuxOptions))
    const who = setters(
      isBad(ofPod),
      bad.map(({ name }) => name),
    )
    if (who === '') return undefined
    const options = [ofPod ?? {}, ...bad.map(({ securityContext }) => securityContext?.seLinuxOptions ?? {})]
    const badTypes = distinct(options.map(({ type = '' }) => type).filter((type) => !types.includes(type)))
    const faults = [
      ...(badTypes.length > 0 ? [named('type', badTypes)] : []),
      ...(options.some(({ user }) => user) ? ['user may not be set'] : []),
      ...(options.some(({ role }) => role) ? ['role may not be set'] : []),
    ]
    return { reason: 'seLinuxOptions', detail: `${who} set forbidden securityContext.seLinuxOptions: ${faults.join('; ')}` }
  }
}

export const seLinuxOptions: Control = {
  id: 'seLinuxOptions',
  level: 'baseline',
  revisions: [
    { since: 0, check: allowing(first) },
    { since: 31, check: allowing([...first, 'container_engine_t']) },
  ],
}
