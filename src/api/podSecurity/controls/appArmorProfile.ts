/** Baseline: AppArmor stays on, by field and by annotation (L1, pure). Upstream: policy/check_appArmorProfile.go. */
import { type CheckPod, type Control, containersOf, distinct, plural, quoted, setters } from '../control.ts'

const annotationPrefix = 'container.apparmor.security.beta.kubernetes.io/'
const allowedTypes: ReadonlySet<string> = new Set(['RuntimeDefault', 'Localhost'])

const check: CheckPod = ({ annotations = {} }, spec) => {
  const ofPod = spec.securityContext?.appArmorProfile?.type
  const podIsBad = ofPod !== undefined && !allowedTypes.has(ofPod)
  const bad = containersOf(spec).filter(({ securityContext }) => isBad(securityContext?.appArmorProfile?.type))
  const types = bad.map(({ securityContext }) => securityContext?.appArmorProfile?.type ?? '')
  const notes = Object.entries(annotations)
    .filter(([key, value]) => key.startsWith(annotationPrefix) && !isAllowedNote(value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort()
  const who = [
    setters(
      podIsBad,
      bad.map(({ name }) => name),
    ),
    ...(notes.length > 0 ? [plural('annotation', notes.length)] : []),
  ].filter((one) => one !== '')
  if (who.length === 0) return undefined
  const values = [...distinct(podIsBad ? [ofPod, ...types] : types), ...notes]
  return {
    reason: plural('forbidden AppArmor profile', values.length),
    detail: `${who.join(' and ')} must not set AppArmor profile type to ${quoted(values)}`,
  }
}

function isBad(type: string | undefined): boolean {
  return type !== undefined && !allowedTypes.has(type)
}

function isAllowedNote(profile: string): boolean {
  return profile === '' || profile === 'runtime/default' || profile.startsWith('localhost/')
}

export const appArmorProfile: Control = { id: 'appArmorProfile', level: 'baseline', revisions: [{ since: 0, check }] }
