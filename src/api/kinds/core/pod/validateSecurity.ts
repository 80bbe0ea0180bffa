/** Validation of security contexts (L1). Upstream: pkg/apis/core/validation ValidateSecurityContext, ValidatePodSecurityContext (v1.36). */
import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isUserId, rangeMessage } from '#api/machinery/names'
import { faults, oneOf } from '../../rules.ts'
import { windowsFaults } from './validateWindows.ts'

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
  errors.push(...windowsFaults(context.windowsOptions, path.child('windowsOptions')))
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
      errors.push(fieldError.invalid(at, sysctl.name, `must have at most 253 characters and match regex ^${sysctlPattern}$`))
    else if (seen.has(sysctl.name)) errors.push(fieldError.duplicate(at, sysctl.name))
    seen.add(sysctl.name)
    const shared = sharedNamespace(spec, sysctl.name)
    if (shared) errors.push(fieldError.invalid(at, sysctl.name, `may not be specified when '${shared}' is true`))
  }
  if (context.seLinuxChangePolicy !== undefined && context.seLinuxChangePolicy !== 'Recursive')
    errors.push(fieldError.notSupported(path.child('seLinuxChangePolicy'), context.seLinuxChangePolicy, ['Recursive']))
  errors.push(...windowsFaults(context.windowsOptions, path.child('windowsOptions')))
  errors.push(...seccompFaults(context.seccompProfile, path.child('seccompProfile')), ...appArmorFaults(context.appArmorProfile, path.child('appArmorProfile')))
  return errors
}

const ipcSysctls = ['kernel.shm', 'kernel.msg', 'kernel.sem', 'fs.mqueue.']

/** The field by which the pod shares the namespace that a sysctl belongs to with its node. */
function sharedNamespace(spec: PodSpec, sysctl: string): string | undefined {
  const name = sysctl.replaceAll('/', '.')
  if (spec.hostNetwork && name.startsWith('net.')) return 'hostNetwork'
  return spec.hostIPC && ipcSysctls.some((prefix) => name.startsWith(prefix)) ? 'hostIPC' : undefined
}

function idFaults(id: number | undefined, path: FieldPath): FieldError[] {
  return id === undefined ? [] : faults(path, id, isUserId(id).length > 0 ? [rangeMessage(0, 2_147_483_647)] : [])
}

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined']

function seccompFaults(profile: SeccompProfile | undefined, path: FieldPath): FieldError[] {
  if (!profile) return []
  const errors: FieldError[] = []
  if (!profile.type) errors.push(fieldError.required(path.child('type'), 'type is required when seccompProfile is set'))
  else if (!profileTypes.includes(profile.type)) errors.push(fieldError.notSupported(path.child('type'), profile.type, profileTypes))
  const at = path.child('localhostProfile')
  const file = profile.localhostProfile
  if (profile.type !== 'Localhost')
    return file === undefined ? errors : [...errors, fieldError.invalid(at, profile, 'can only be set when seccomp type is Localhost')]
  if (file === undefined) return [...errors, fieldError.required(at, 'must be set when seccomp type is Localhost')]
  return [...errors, ...descendingPathFaults(file, at)]
}

const maxProfilePathLength = 4095

/** One profile, of a container or of the pod. */
export function appArmorFaults(profile: AppArmorProfile | undefined, path: FieldPath): FieldError[] {
  if (!profile) return []
  const at = path.child('localhostProfile')
  const file = profile.localhostProfile
  if (!profile.type) return [fieldError.required(path.child('type'), 'type is required when appArmorProfile is set')]
  if (!profileTypes.includes(profile.type)) return [fieldError.notSupported(path.child('type'), profile.type, profileTypes)]
  if (profile.type !== 'Localhost') return file === undefined ? [] : [fieldError.invalid(at, file, 'can only be set when AppArmor type is Localhost')]
  if (!file) return [fieldError.required(at, 'must be set when AppArmor type is Localhost')]
  const errors = file.trim() === file ? [] : [fieldError.invalid(at, file, 'must not be padded with whitespace')]
  return file.length > maxProfilePathLength ? [...errors, fieldError.tooLong(at, maxProfilePathLength)] : errors
}

/** A path inside a directory that is not the pod's. */
export function descendingPathFaults(value: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (value.startsWith('/')) errors.push(fieldError.invalid(path, value, 'must be a relative path'))
  if (value.split('/').includes('..')) errors.push(fieldError.invalid(path, value, "must not contain '..'"))
  return errors
}
