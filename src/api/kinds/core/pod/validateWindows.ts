/**
 * Validates fields that only Windows has (L1): users, credentials, containers that are processes of the host; and refuses fields of one operating
 * system in pods of the other. Upstream: pkg/apis/core/validation validateWindows*, validateOS, validateLinux (v1.36).
 */
import type { PodSpec, WindowsSecurityContextOptions } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Subdomain } from '#api/machinery/names'
import { faults } from '../../rules.ts'
import { utf8Length } from '../data.ts'

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const
const maxCredentialSpecBytes = 64 * 1024
const maxDomainBytes = 256
const maxUserBytes = 104
const netBiosName = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/
const dnsName = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

/** The options of a pod or of a container. */
export function windowsFaults(options: WindowsSecurityContextOptions | undefined, path: FieldPath): FieldError[] {
  if (!options) return []
  const { gmsaCredentialSpecName: name, gmsaCredentialSpec: spec, runAsUserName: user } = options
  const errors = name === undefined ? [] : faults(path.child('gmsaCredentialSpecName'), name, isDns1123Subdomain(name))
  const at = path.child('gmsaCredentialSpec')
  if (spec === '') errors.push(fieldError.invalid(at, spec, 'gmsaCredentialSpec cannot be an empty string'))
  else if (spec !== undefined && utf8Length(spec) > maxCredentialSpecBytes)
    errors.push(fieldError.invalid(at, spec, 'gmsaCredentialSpec size must be under 64 KiB'))
  return user === undefined ? errors : [...errors, ...faults(path.child('runAsUserName'), user, userNameFaults(user))]
}

/** `user` or `domain\\user`, in Active Directory's forms. */
function userNameFaults(name: string): string[] {
  if (name === '') return ['runAsUserName cannot be an empty string']
  if (/\p{Cc}/u.test(name)) return ['runAsUserName cannot contain control characters']
  const parts = name.split('\\')
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash']
  const user = parts.at(-1) ?? ''
  const errors = parts.length === 2 ? domainFaults(parts[0] ?? '') : []
  if (user === '') errors.push("runAsUserName's User cannot be empty")
  else if (utf8Length(user) > maxUserBytes) errors.push(`runAsUserName's User length must not be longer than ${maxUserBytes} characters`)
  if (/^[. ]+$/.test(user)) errors.push("runAsUserName's User cannot contain only periods or spaces")
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) errors.push(`runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`)
  return errors
}

function domainFaults(domain: string): string[] {
  const errors = utf8Length(domain) >= maxDomainBytes ? [`runAsUserName's Domain length must be under ${maxDomainBytes} characters`] : []
  const isDomain = netBiosName.test(domain) || dnsName.test(domain)
  return isDomain ? errors : [...errors, "runAsUserName's Domain doesn't match the NetBios nor the DNS format"]
}

/** A pod has only host process containers or none, and they need the host's network. @param path of the pod spec */
export function validateHostProcess(spec: PodSpec, path: FieldPath): FieldError[] {
  const whole = spec.securityContext?.windowsOptions?.hostProcess
  const errors: FieldError[] = []
  let [count, total] = [0, 0]
  for (const list of containerLists) {
    for (const [i, { securityContext }] of (spec[list] ?? []).entries()) {
      const own = securityContext?.windowsOptions?.hostProcess
      total++
      if (own ?? whole) count++
      if (own === undefined || whole === undefined || own === whole) continue
      const at = path.child(list).index(i).child('securityContext', 'windowsOptions', 'hostProcess')
      errors.push(fieldError.invalid(at, own, `pod hostProcess value must be identical if both are specified, was ${whole}`))
    }
  }
  if (count === 0) return errors
  if (count < total) errors.push(fieldError.invalid(path, '', 'If pod contains any hostProcess containers then all containers must be HostProcess containers'))
  if (!spec.hostNetwork)
    errors.push(fieldError.invalid(path.child('hostNetwork'), false, 'hostNetwork must be true if pod contains any hostProcess containers'))
  return errors
}

const notForWindows = {
  pod: [
    ...(['appArmorProfile', 'seLinuxOptions', 'seccompProfile', 'fsGroup', 'fsGroupChangePolicy', 'sysctls', 'runAsUser', 'runAsGroup'] as const),
    ...(['supplementalGroups', 'supplementalGroupsPolicy', 'seLinuxChangePolicy'] as const),
  ],
  spec: ['hostUsers', 'hostPID', 'hostIPC', 'shareProcessNamespace'],
  container: [
    ...(['appArmorProfile', 'seLinuxOptions', 'seccompProfile', 'capabilities', 'readOnlyRootFilesystem', 'privileged'] as const),
    ...(['allowPrivilegeEscalation', 'procMount', 'runAsUser', 'runAsGroup'] as const),
  ],
} as const

/** Fields that the other operating system has no meaning for. */
export function osFaults(spec: PodSpec, path: FieldPath): FieldError[] {
  if (!spec.os) return []
  if (!spec.os.name) return [fieldError.required(path.child('os', 'name'), 'cannot be empty')]
  // The path lacks the name: upstream's quirk.
  if (spec.os.name !== 'linux' && spec.os.name !== 'windows') return [fieldError.notSupported(path.child('os'), spec.os.name, ['linux', 'windows'])]
  const contexts = containerLists.flatMap((list) =>
    (spec[list] ?? []).map(({ securityContext }, i) => ({ securityContext, at: path.child(list).index(i).child('securityContext') })),
  )
  const pod = path.child('securityContext')
  if (spec.os.name === 'linux') {
    const not = 'windows options cannot be set for a linux pod'
    return [{ securityContext: spec.securityContext, at: pod }, ...contexts].flatMap(({ securityContext, at }) =>
      securityContext?.windowsOptions ? [fieldError.forbidden(at.child('windowsOptions'), not)] : [],
    )
  }
  const forbidden = (at: FieldPath, of: object | undefined, fields: readonly string[]) =>
    fields.flatMap((field) => {
      const value = (of as Record<string, unknown> | undefined)?.[field]
      const unset = value === undefined || (value === false && field.startsWith('host') && field !== 'hostUsers')
      return unset ? [] : [fieldError.forbidden(at.child(field), 'cannot be set for a windows pod')]
    })
  return [
    ...forbidden(pod, spec.securityContext, notForWindows.pod),
    ...forbidden(path, spec, notForWindows.spec),
    ...contexts.flatMap(({ securityContext, at }) => forbidden(at, securityContext, notForWindows.container)),
  ]
}
