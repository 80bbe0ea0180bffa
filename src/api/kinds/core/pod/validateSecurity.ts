/** Validation of security contexts (L1). Upstream: pkg/apis/core/validation ValidateSecurityContext, ValidatePodSecurityContext (v1.36). */
import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isUserId, rangeMessage } from '#api/machinery/names'
import { faults, oneOf } from '../../rules.ts'

const sysctlPattern = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const sysctlForm = new RegExp(`^${sysctlPattern}$`)

/** A container's. @param hostUsers the pod's: procMount Unmasked needs a user namespace */
export function validateSecurityContext(context: SecurityContext | undefined, hostUsers: boolean | undefined, path: FieldPath): FieldError[] {
  if (!context) return []
  const errors = [...idFaults(context.runAsUser, path.child('runAsUser')), ...idFaults(context.runAsGroup, path.child('runAsGroup'))]
  if (context.procMount !== undefined) {
    errors.push(...oneOf(context.procMount, ['Default', 'Unmasked'], path.child('procMount')))
    if (context.procMount === 'Unmasked' && hostUsers !== false)
      errors.push(fieldError.invalid(path.child('procMount'), context.procMount, '`hostUsers` must be false to use `Unmasked`'))
  }
  errors.push(...seccompFaults(context.seccompProfile, path.child('seccompProfile')), ...appArmorFaults(context.appArmorProfile, path.child('appArmorProfile')))
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged) errors.push(fieldError.invalid(path, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'))
    if (context.capabilities?.add?.includes('CAP_SYS_ADMIN'))
      errors.push(fieldError.invalid(path, context, 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'))
  }
  return errors
}

/** The pod's, and the host's namespaces that it shares. */
export function validatePodSecurityContext(spec: PodSpec, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (spec.shareProcessNamespace && spec.hostPID)
    errors.push(fieldError.invalid(path.child('shareProcessNamespace'), true, 'ShareProcessNamespace and HostPID cannot both be enabled'))
  const context = spec.securityContext
  if (!context) return errors
  for (const field of ['fsGroup', 'runAsUser', 'runAsGroup'] as const) errors.push(...idFaults(context[field], path.child(field)))
  for (const [i, group] of (context.supplementalGroups ?? []).entries()) errors.push(...idFaults(group, path.child('supplementalGroups').index(i)))
  if (context.supplementalGroupsPolicy !== undefined)
    errors.push(...oneOf(context.supplementalGroupsPolicy, ['Merge', 'Strict'], path.child('supplementalGroupsPolicy')))
  if (context.fsGroupChangePolicy !== undefined)
    errors.push(...oneOf(context.fsGroupChangePolicy, ['Always', 'OnRootMismatch'], path.child('fsGroupChangePolicy')))
  const seen = new Set<string>()
  for (const [i, sysctl] of (context.sysctls ?? []).entries()) {
    const at = path.child('sysctls').index(i).child('name')
    if (!sysctl.name) errors.push(fieldError.required(at))
    else if (sysctl.name.length > 253 || !sysctlForm.test(sysctl.name))
      errors.push(fieldError.invalid(at, sysctl.name, `must have at most 253 characters and match regex ${sysctlPattern}`))
    else if (seen.has(sysctl.name)) errors.push(fieldError.duplicate(at, sysctl.name))
    seen.add(sysctl.name)
  }
  errors.push(...seccompFaults(context.seccompProfile, path.child('seccompProfile')), ...appArmorFaults(context.appArmorProfile, path.child('appArmorProfile')))
  return errors
}

function idFaults(id: number | undefined, path: FieldPath): FieldError[] {
  return id === undefined ? [] : faults(path, id, isUserId(id).length > 0 ? [rangeMessage(0, 2_147_483_647)] : [])
}

function seccompFaults(profile: SeccompProfile | undefined, path: FieldPath): FieldError[] {
  if (!profile) return []
  if (!profile.type) return [fieldError.required(path.child('type'), 'type is required when seccompProfile is set')]
  const at = path.child('localhostProfile')
  if (profile.type === 'Localhost') {
    if (!profile.localhostProfile) return [fieldError.required(at, 'must be set when seccomp type is Localhost')]
    return pathFaults(profile.localhostProfile, at)
  }
  const errors = oneOf(profile.type, ['Localhost', 'RuntimeDefault', 'Unconfined'], path.child('type'))
  if (profile.localhostProfile) errors.push(fieldError.invalid(at, profile, 'can only be set when seccomp type is Localhost'))
  return errors
}

function appArmorFaults(profile: AppArmorProfile | undefined, path: FieldPath): FieldError[] {
  if (!profile) return []
  if (!profile.type) return [fieldError.required(path.child('type'), 'type is required when appArmorProfile is set')]
  const at = path.child('localhostProfile')
  if (profile.type === 'Localhost') return profile.localhostProfile ? [] : [fieldError.required(at, 'must be set when AppArmor type is Localhost')]
  const errors = oneOf(profile.type, ['Localhost', 'RuntimeDefault', 'Unconfined'], path.child('type'))
  if (profile.localhostProfile) errors.push(fieldError.invalid(at, profile.localhostProfile, 'can only be set when AppArmor type is Localhost'))
  return errors
}

/** A path inside a directory that is not the pod's. */
function pathFaults(value: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (value.startsWith('/')) errors.push(fieldError.invalid(path, value, 'must be a relative path'))
  if (value.split('/').includes('..')) errors.push(fieldError.invalid(path, value, "must not contain '..'"))
  return errors
}
