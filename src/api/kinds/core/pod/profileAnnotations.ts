/**
 * The annotations that named seccomp and AppArmor profiles before there were fields (L1): validates their form and that they agree with the fields, and
 * turns an AppArmor annotation into a field. Upstream: pkg/apis/core/validation, pkg/registry/core/pod applyAppArmorVersionSkew (v1.35).
 */
import type { AppArmorProfile, Container, Pod, PodSpec, SeccompProfile } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { appArmorFaults, descendingPathFaults } from './validateSecurity.ts'

export const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/'
const seccompPodKey = 'seccomp.security.alpha.kubernetes.io/pod'
const seccompPrefix = 'container.seccomp.security.alpha.kubernetes.io/'
const localhost = 'localhost/'
type Annotations = Readonly<Record<string, string>>

function containersOf(spec: PodSpec, path: FieldPath): { container: Container; at: FieldPath }[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, i) => ({ container, at: path.child(list).index(i) })),
  )
}

/** Forms of the annotations. @param path of the annotations */
export function profileAnnotationFaults(annotations: Annotations, spec: PodSpec, path: FieldPath): FieldError[] {
  return Object.entries(annotations).flatMap(([key, profile]) => {
    if (key === seccompPodKey || key.startsWith(seccompPrefix)) return seccompFaults(profile, path.child(key))
    return key.startsWith(appArmorPrefix) ? appArmorAnnotationFaults(key, profile, spec, path.key(key)) : []
  })
}

function seccompFaults(profile: string, path: FieldPath): FieldError[] {
  if (['runtime/default', 'docker/default', 'unconfined'].includes(profile)) return []
  if (profile.startsWith(localhost)) return descendingPathFaults(profile.slice(localhost.length), path)
  return [fieldError.invalid(path, profile, 'must be a valid seccomp profile')]
}

function appArmorAnnotationFaults(key: string, profile: string, spec: PodSpec, path: FieldPath): FieldError[] {
  const name = key.slice(appArmorPrefix.length)
  const isThere = containersOf(spec, path).some(({ container }) => container.name === name)
  const errors = isThere ? [] : [fieldError.invalid(path, name, 'container not found')]
  if (['', 'runtime/default', 'unconfined'].includes(profile) || profile.startsWith(localhost)) return errors
  return [...errors, fieldError.invalid(path, profile, `invalid AppArmor profile name: ${JSON.stringify(profile)}`)]
}

/** Where a new pod has both an annotation and a field, they agree. @param path of the pod */
export function profileMismatches({ metadata, spec }: Pod, path: FieldPath): FieldError[] {
  const annotations = metadata.annotations
  if (!annotations) return []
  const at = path.child('spec')
  const { seccompProfile, appArmorProfile } = spec.securityContext ?? {}
  const ofContainers = containersOf(spec, at).map(({ container, at: own }) => ({ ...container, own: own.child('securityContext') }))
  return [
    ...mismatch('seccomp', annotations[seccompPodKey], seccompProfile, at.child('securityContext', 'seccompProfile')),
    ...ofContainers.flatMap(({ name, securityContext, own }) =>
      mismatch('seccomp', annotations[`${seccompPrefix}${name}`], securityContext?.seccompProfile, own.child('seccompProfile')),
    ),
    ...(spec.os?.name === 'windows' ? [] : ofContainers).flatMap(({ name, securityContext, own }) =>
      mismatch('apparmor', annotations[`${appArmorPrefix}${name}`], securityContext?.appArmorProfile ?? appArmorProfile, own.child('appArmorProfile')),
    ),
  ]
}

type Profile = SeccompProfile | AppArmorProfile

function mismatch(kind: 'seccomp' | 'apparmor', annotation: string | undefined, profile: Profile | undefined, path: FieldPath): FieldError[] {
  if (annotation === undefined || !profile) return []
  const wrongType = [fieldError.forbidden(path.child('type'), `${kind} type in annotation and field must match`)]
  if (profile.type === 'Unconfined') return annotation === 'unconfined' ? [] : wrongType
  if (profile.type === 'RuntimeDefault') {
    const isDefault = annotation === 'runtime/default' || (kind === 'seccomp' && annotation === 'docker/default')
    return isDefault ? [] : wrongType
  }
  if (profile.type !== 'Localhost') return []
  if (!annotation.startsWith(localhost)) return wrongType
  if (annotation.slice(localhost.length) === profile.localhostProfile) return []
  return [fieldError.forbidden(path.child('localhostProfile'), `${kind} profile in annotation and field must match`)]
}

/** Takes a new pod's AppArmor annotations over into the fields of its containers that have none; tells the client to write the fields. */
export function takeOverAppArmor({ metadata, spec }: Pod, warn: ((text: string) => void) | undefined): void {
  const { annotations } = metadata
  if (!annotations || spec.os?.name === 'windows') return
  for (const { container } of containersOf(spec, FieldPath.of())) {
    const key = `${appArmorPrefix}${container.name}`
    const annotation = annotations[key]
    if (annotation === undefined || container.securityContext?.appArmorProfile) continue
    const profile = profileOf(annotation)
    const isNew = !semanticEqual(profile, spec.securityContext?.appArmorProfile)
    if (profile && isNew) container.securityContext = { ...container.securityContext, appArmorProfile: profile }
    if (!profile || isNew) warn?.(`metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`)
  }
}

function profileOf(annotation: string): AppArmorProfile | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' }
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' }
  if (!annotation.startsWith(localhost) || annotation === localhost) return undefined
  const profile = { type: 'Localhost', localhostProfile: annotation.slice(localhost.length) }
  return appArmorFaults(profile, FieldPath.of()).length > 0 ? undefined : profile
}
