/** Security contexts in the runtime's terms (L3, pure). Upstream: kuberuntime/security_context.go, pkg/securitycontext (v1.36). */
import type { AppArmorProfile, SELinuxOptions, SeccompProfile, SecurityContext } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { LinuxContainerSecurityContext, LinuxSandboxSecurityContext, NamespaceOption, RuntimeImage, SecurityProfile, UserNamespace } from '#grpc/criTypes'
import { type FrozenContainer, type FrozenPod, formatPod } from '../core/containers.ts'
import { ConfigError } from './environment.ts'

const defaultMaskedPaths = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
]
const defaultReadonlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

/** The container's settings over the pod's. */
function effectiveSecurityContext(pod: FrozenPod, container: FrozenContainer): Frozen<SecurityContext> {
  const shared = pod.spec.securityContext ?? {}
  const own = container.securityContext ?? {}
  return {
    ...own,
    runAsUser: own.runAsUser ?? shared.runAsUser,
    runAsGroup: own.runAsGroup ?? shared.runAsGroup,
    runAsNonRoot: own.runAsNonRoot ?? shared.runAsNonRoot,
    seccompProfile: own.seccompProfile ?? shared.seccompProfile,
    appArmorProfile: own.appArmorProfile ?? shared.appArmorProfile,
    seLinuxOptions: own.seLinuxOptions ?? shared.seLinuxOptions,
  }
}

function namespaceOptions(pod: FrozenPod, users: UserNamespace, targetId?: string): NamespaceOption {
  const pid = pod.spec.hostPID ? 'NODE' : pod.spec.shareProcessNamespace ? 'POD' : 'CONTAINER'
  return {
    network: pod.spec.hostNetwork ? 'NODE' : 'POD',
    ipc: pod.spec.hostIPC ? 'NODE' : 'POD',
    usernsOptions: users,
    ...(targetId === undefined ? { pid } : { pid: 'TARGET', targetId }),
  }
}

/** Without a profile a container is unconfined, as upstream leaves it unless seccompDefault is on. @throws ConfigError for a local profile without a name */
export function seccomp(profile: Frozen<SeccompProfile> | undefined, rootDirectory: string): SecurityProfile {
  if (profile?.type === 'RuntimeDefault') return { profileType: 'RuntimeDefault' }
  if (profile?.type === 'Localhost') {
    // A runtime takes an empty reference for none at all.
    if (!profile.localhostProfile) throw new ConfigError('localhostProfile must be set if seccompProfile type is Localhost.')
    return { profileType: 'Localhost', localhostRef: `${rootDirectory}/seccomp/${profile.localhostProfile}` }
  }
  return { profileType: 'Unconfined' }
}

function appArmor({ type, localhostProfile }: Frozen<AppArmorProfile>): SecurityProfile {
  if (type === 'Localhost') return { profileType: 'Localhost', localhostRef: localhostProfile ?? '' }
  // Without a profile the runtime confines the container by its own.
  return { profileType: type === 'Unconfined' ? 'Unconfined' : 'RuntimeDefault' }
}

/** Refuses a container that must not run as root and would. @throws ConfigError with upstream's text. */
export function verifyRunAsNonRoot(pod: FrozenPod, container: FrozenContainer, image: RuntimeImage | undefined): void {
  const context = effectiveSecurityContext(pod, container)
  if (!context.runAsNonRoot) return
  const where = `(pod: "${formatPod(pod)}", container: ${container.name})`
  if (context.runAsUser !== undefined) {
    if (context.runAsUser === 0) throw new ConfigError(`container's runAsUser breaks non-root policy ${where}`)
    return
  }
  const uid = image?.uid?.value
  if (uid === undefined && image?.username) {
    throw new ConfigError(`container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${where}`)
  }
  if (uid === undefined || uid === 0) throw new ConfigError(`container has runAsNonRoot and image will run as root ${where}`)
}

const seLinux = ({ user = '', role = '', type = '', level = '' }: Frozen<SELinuxOptions>) => ({ user, role, type, level })

function supplementalGroups(pod: FrozenPod, extra: readonly number[] = []): number[] {
  const { fsGroup, supplementalGroups: groups } = pod.spec.securityContext ?? {}
  const own = [...(groups ?? []), ...(fsGroup === undefined ? [] : [fsGroup])]
  return [...own, ...extra.filter((group) => !own.includes(group))]
}

export function containerSecurityContext(
  pod: FrozenPod,
  container: FrozenContainer,
  options: {
    readonly rootDirectory: string
    readonly users: UserNamespace
    readonly image?: RuntimeImage | undefined
    readonly targetId?: string | undefined
    readonly extraGroups?: readonly number[] | undefined
    /** The profile of containers that name none is the runtime's. */
    readonly seccompDefault?: boolean | undefined
  },
): LinuxContainerSecurityContext {
  const context = effectiveSecurityContext(pod, container)
  const privileged = context.privileged === true
  const unmasked = privileged || context.procMount === 'Unmasked'
  const { image } = options
  const user = context.runAsUser ?? image?.uid?.value
  const { appArmorProfile, seLinuxOptions } = context
  return {
    ...(appArmorProfile && !privileged ? { apparmor: appArmor(appArmorProfile) } : {}),
    ...(seLinuxOptions ? { selinuxOptions: seLinux(seLinuxOptions) } : {}),
    ...(pod.spec.securityContext?.supplementalGroupsPolicy === 'Strict' ? { supplementalGroupsPolicy: 1 } : {}),
    namespaceOptions: namespaceOptions(pod, options.users, options.targetId),
    privileged,
    readonlyRootfs: context.readOnlyRootFilesystem === true,
    noNewPrivs: context.allowPrivilegeEscalation === false,
    supplementalGroups: supplementalGroups(pod, options.extraGroups),
    seccomp: privileged
      ? { profileType: 'Unconfined' }
      : seccomp(context.seccompProfile ?? (options.seccompDefault ? { type: 'RuntimeDefault' } : undefined), options.rootDirectory),
    maskedPaths: unmasked ? [] : defaultMaskedPaths,
    readonlyPaths: unmasked ? [] : defaultReadonlyPaths,
    ...(user === undefined ? (image?.username ? { runAsUsername: image.username } : {}) : { runAsUser: { value: user } }),
    ...(context.runAsGroup === undefined ? {} : { runAsGroup: { value: context.runAsGroup } }),
    ...(context.capabilities
      ? { capabilities: { addCapabilities: [...(context.capabilities.add ?? [])], dropCapabilities: [...(context.capabilities.drop ?? [])] } }
      : {}),
  }
}

export function sandboxSecurityContext(pod: FrozenPod, users: UserNamespace): LinuxSandboxSecurityContext {
  const context = pod.spec.securityContext ?? {}
  // The runtime refuses privileged containers in a sandbox that is not.
  const privileged = [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])].some(
    (container) => container.securityContext?.privileged,
  )
  return {
    namespaceOptions: namespaceOptions(pod, users),
    privileged,
    ...(context.seLinuxOptions ? { selinuxOptions: seLinux(context.seLinuxOptions) } : {}),
    supplementalGroups: supplementalGroups(pod),
    ...(context.supplementalGroupsPolicy === 'Strict' ? { supplementalGroupsPolicy: 1 } : {}),
    // The pause process always gets the runtime's profile, so that the pod's own may allow no more than the pod needs.
    seccomp: { profileType: 'RuntimeDefault' },
    ...(context.runAsUser === undefined ? {} : { runAsUser: { value: context.runAsUser } }),
    ...(context.runAsGroup === undefined || context.runAsUser === undefined ? {} : { runAsGroup: { value: context.runAsGroup } }),
  }
}
