/**
 * Container statuses as the API shows them (L3, pure): from the runtime's records, the previous status and why a start is being put off.
 * Upstream: kubelet_pods.go convertToAPIContainerStatuses (v1.36).
 */
import type { ContainerState, ContainerStatus, ResourceRequirements, VolumeMountStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import {
  type ContainerKind,
  type FrozenContainer,
  type FrozenPod,
  isRestartableInitContainer,
  restartingAllReason,
  shouldRestart,
  shouldRestartInit,
  statusFinder,
} from '../core/containers.ts'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import type { ProbeResults } from '../core/probeResults.ts'

/** Why a container could not be started: shown as its waiting reason. */
export interface StartFailure {
  readonly reason: string
  readonly message: string
}

export interface ContainerStatusInput {
  readonly pod: FrozenPod
  readonly runtimeStatus: PodRuntimeStatus
  readonly runtimeName: string
  readonly previous: readonly Frozen<ContainerStatus>[] | undefined
  readonly startFailure: (containerName: string) => StartFailure | undefined
  readonly probes: ProbeResults
  /** The actual resources of a running container; undefined: those in the spec. */
  readonly appliedResources?: ((record: ContainerRecord) => Frozen<ResourceRequirements> | undefined) | undefined
  /** The health of the devices that a container has. */
  readonly resourceStatus?: ((container: FrozenContainer) => NonNullable<ContainerStatus['allocatedResourcesStatus']>) | undefined
  /** All containers of the pod are being removed from the runtime, to restart. */
  readonly isRestartingAll?: boolean | undefined
}

/** Why a container ended if the runtime does not know: reported as terminated with exit code 137. */
export const unknownEnd = {
  exitCode: 137,
  reason: 'ContainerStatusUnknown',
  message: 'The container could not be located when the pod was terminated',
  startedAt: undefined,
  finishedAt: undefined,
} as const

/** The last state of a container that was removed from the runtime because all containers of the pod restart. */
const restartingAll = {
  reason: restartingAllReason,
  message: 'The container is removed because RestartAllContainers in place',
} as const

/** Waiting, running or terminated, from the runtime's state. A created container that is not started waits for an unknown reason. */
function containerState(record: ContainerRecord, runtimeName: string): ContainerState {
  if (record.state === 'running') return { running: { startedAt: formatTime(record.startedAtMs) } }
  if (record.state !== 'exited') return { waiting: {} }
  return {
    terminated: {
      exitCode: record.exitCode,
      reason: record.reason || (record.exitCode === 0 ? 'Completed' : 'Error'),
      ...(record.message ? { message: record.message } : {}),
      // A container that never started has the zero time, as upstream prints it.
      startedAt: formatTime(record.startedAtMs),
      finishedAt: formatTime(record.finishedAtMs),
      containerID: `${runtimeName}://${record.id}`,
    },
  }
}

/** The statuses of one kind of containers: of init containers in the spec's order, of others by name. */
export function containerStatuses(input: ContainerStatusInput, containers: readonly FrozenContainer[], kind: ContainerKind): ContainerStatus[] {
  const ordered = kind === 'init' ? containers : [...containers].sort((a, b) => (a.name < b.name ? -1 : 1))
  const recordsOf = new Map<string, ContainerRecord[]>()
  for (const record of input.runtimeStatus.containers) {
    const records = recordsOf.get(record.name)
    if (records) records.push(record)
    else recordsOf.set(record.name, [record])
  }
  const previousOf = statusFinder(input.previous)
  return ordered.map((container) => {
    const records = recordsOf.get(container.name) ?? []
    const previous = previousOf(container.name)
    // Ephemeral containers that have not been started yet are shown as waiting too.
    const status = records.length > 0 ? fromRecords(input, container, records, previous) : withoutRecord(input, container, kind, previous)
    return withReadiness(input, withStartFailure(input, status, container, records[0], kind), container, records[0], kind)
  })
}

function fromRecords(
  input: ContainerStatusInput,
  container: FrozenContainer,
  records: readonly ContainerRecord[],
  previous: Frozen<ContainerStatus> | undefined,
): ContainerStatus {
  const [current, last] = records
  if (!current) throw new Error('no record')
  const containerID = `${input.runtimeName}://${current.id}`
  const lastState = last
    ? containerState(last, input.runtimeName)
    : (deepCopy<ContainerState | undefined>(previous?.containerID === containerID || !previous?.state?.terminated ? previous?.lastState : previous.state) ?? {})
  const user = current.status.user?.linux
  const mounts = volumeMountStatuses(container, current)
  const devices = input.resourceStatus?.(container) ?? []
  return {
    name: container.name,
    containerID,
    image: current.image || (container.image ?? ''),
    imageID: current.imageId,
    ready: false,
    ...currentState(input, current, previous),
    lastState: lastState.terminated ? { terminated: lastState.terminated } : {},
    resources: resourcesOf(input, container, current),
    ...(container.resources?.requests ? { allocatedResources: { ...container.resources.requests } } : {}),
    ...(user ? { user: { linux: { ...user } } } : {}),
    ...(mounts.length > 0 ? { volumeMounts: mounts } : {}),
    ...(devices.length > 0 ? { allocatedResourcesStatus: devices } : {}),
  }
}

/** What a running container really has, of what it may ask for itself; what another one will be started with. Empty where that is nothing: the node can resize it. */
function resourcesOf(input: ContainerStatusInput, container: FrozenContainer, record: ContainerRecord): ResourceRequirements {
  const own = container.resources ?? {}
  const applied = record.state === 'running' ? input.appliedResources?.(record) : undefined
  const { limits, requests, ...rest } = deepCopy<ResourceRequirements>(applied ?? own)
  return { ...rest, ...(own.limits && limits ? { limits } : {}), ...(own.requests && requests ? { requests } : {}) }
}

/** A count never goes back; a container that ran and of which the runtime has lost track has ended, and that counts as well. */
function currentState(
  input: ContainerStatusInput,
  record: ContainerRecord,
  previous: Frozen<ContainerStatus> | undefined,
): Pick<ContainerStatus, 'restartCount' | 'state'> {
  const hasEndedBefore = record.state === 'running' && previous?.state?.terminated !== undefined
  const restartCount = Math.max(record.restartCount, (previous?.restartCount ?? 0) + (hasEndedBefore ? 1 : 0))
  if (record.state === 'unknown' && previous?.state?.running) {
    const reason = input.isRestartingAll ? restartingAllReason : unknownEnd.reason
    return { restartCount: previous.restartCount + 1, state: { terminated: { ...unknownEnd, reason } } }
  }
  return { restartCount, state: withKnownMessage(containerState(record, input.runtimeName), previous) }
}

/** The termination message is in a file of the pod's directory, which is removed; once reported, the message is taken from the status. */
function withKnownMessage(state: ContainerState, previous: Frozen<ContainerStatus> | undefined): ContainerState {
  const before = previous?.state?.terminated
  if (!state.terminated || state.terminated.message || !before?.message || before.containerID !== state.terminated.containerID) return state
  return { terminated: { ...state.terminated, message: before.message } }
}

function volumeMountStatuses(container: FrozenContainer, record: ContainerRecord | undefined): VolumeMountStatus[] {
  const recursive = (path: string) =>
    record?.status.mounts.some(({ containerPath, recursiveReadOnly }) => containerPath === path && recursiveReadOnly === true) ?? false
  return (container.volumeMounts ?? []).map((mount) => ({
    name: mount.name,
    mountPath: mount.mountPath,
    ...(mount.readOnly ? { readOnly: true, recursiveReadOnly: recursive(mount.mountPath) ? 'Enabled' : 'Disabled' } : {}),
  }))
}

function withoutRecord(
  input: ContainerStatusInput,
  container: FrozenContainer,
  kind: ContainerKind,
  previous: Frozen<ContainerStatus> | undefined,
): ContainerStatus {
  const reason = (input.pod.spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating'
  const fresh = { name: container.name, image: container.image ?? '', imageID: '', restartCount: 0, ready: false, lastState: {} }
  const mounts = volumeMountStatuses(container, undefined)
  const waiting = { ...fresh, ...(mounts.length > 0 ? { volumeMounts: mounts } : {}), state: { waiting: { reason } } }
  if (!previous) return kind === 'init' ? asCompleted(input, container, waiting) : waiting
  if (input.isRestartingAll && !previous.state?.waiting) return removedForRestart(previous, waiting)
  if (previous.state?.terminated) return deepCopy<ContainerStatus>(previous)
  const again = { ...waiting, restartCount: previous.restartCount, lastState: deepCopy<ContainerState>(previous.lastState ?? {}) }
  if (!previous.state?.running || previous.lastState?.terminated) return kind === 'init' ? asCompleted(input, container, again) : again
  // It ran, and now there is no trace of it: it will be started again, and that counts.
  const message = 'The container could not be located when the pod was deleted.  The container used to be Running'
  const restarts = input.pod.metadata.deletionTimestamp ? 0 : 1
  const lost = { ...again, restartCount: previous.restartCount + restarts, lastState: { terminated: { ...unknownEnd, message } } }
  return kind === 'init' ? asCompleted(input, container, lost) : lost
}

/** All containers of the pod restart: this one is removed from the runtime and not created again yet. */
function removedForRestart(previous: Frozen<ContainerStatus>, waiting: ContainerStatus): ContainerStatus {
  const base = previous.state?.terminated ? deepCopy<ContainerStatus>(previous) : waiting
  return {
    ...base,
    restartCount: previous.restartCount + 1,
    state: { waiting: { ...restartingAll } },
    lastState: { terminated: { ...unknownEnd, ...restartingAll } },
  }
}

/** An init container without a record: if regular containers were created after it, it must have completed. */
function asCompleted({ pod, runtimeStatus }: ContainerStatusInput, container: FrozenContainer, status: ContainerStatus): ContainerStatus {
  const regular = new Set(pod.spec.containers.map(({ name }) => name))
  const wasInitialized = runtimeStatus.containers.some(({ name, state }) => regular.has(name) && state !== 'unknown')
  if (!wasInitialized || isRestartableInitContainer(container)) return status
  const message = 'Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally'
  return { ...status, state: { terminated: { exitCode: 0, reason: 'Completed', message, startedAt: undefined, finishedAt: undefined } } }
}

/** A container that is to be started again but cannot yet is waiting, with the reason; its last run becomes the last state. */
function withStartFailure(
  input: ContainerStatusInput,
  status: ContainerStatus,
  container: FrozenContainer,
  record: ContainerRecord | undefined,
  kind: ContainerKind,
): ContainerStatus {
  const failure = input.startFailure(container.name)
  if (!failure || !isToStart(input.pod, container, record, kind)) return status
  return {
    ...status,
    state: { waiting: { reason: failure.reason, ...(failure.message ? { message: failure.message } : {}) } },
    lastState: status.state?.terminated ? { terminated: status.state.terminated } : (status.lastState ?? {}),
  }
}

/** Whether the next step starts it; nothing of a pod that is to be deleted. */
function isToStart(pod: FrozenPod, container: FrozenContainer, record: ContainerRecord | undefined, kind: ContainerKind): boolean {
  if (pod.metadata.deletionTimestamp || record?.state === 'running') return false
  if (record?.state !== 'exited') return true
  if (kind === 'ephemeral') return false
  const again = kind === 'init' && !isRestartableInitContainer(container) ? shouldRestartInit : shouldRestart
  return again(pod, container, record.exitCode)
}

function withReadiness(
  input: ContainerStatusInput,
  status: ContainerStatus,
  container: FrozenContainer,
  record: ContainerRecord | undefined,
  kind: ContainerKind,
): ContainerStatus {
  const running = status.state?.running !== undefined
  if (kind === 'ephemeral') return status
  if (kind === 'init' && !isRestartableInitContainer(container)) {
    return { ...status, ready: status.state?.terminated?.exitCode === 0, started: running }
  }
  const started = running && record !== undefined && input.probes.started(record.id, container)
  return { ...status, started, ready: started && record !== undefined && input.probes.ready(record.id, container) }
}
