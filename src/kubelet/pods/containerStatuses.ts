/**
 * Container statuses as the API shows them (L3, pure): from the runtime's records, the previous status and why a start is being put off.
 * Upstream: kubelet_pods.go convertToAPIContainerStatuses, toKubeContainerStatus (v1.36).
 */
import type { ContainerState, ContainerStatus, ResourceRequirements, VolumeMountStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import type { ContainerRecord, PodRuntimeStatus } from '../runtime/podRuntimeStatus.ts'
import {
  type ContainerKind,
  type FrozenContainer,
  type FrozenPod,
  isRestartableInitContainer,
  shouldRestart,
  shouldRestartInit,
  statusOf,
} from './containers.ts'

/** Why a container could not be started: shown as its waiting reason. */
export interface StartFailure {
  readonly reason: string
  readonly message: string
}

export interface ProbeResults {
  /** True without a readiness probe, else what it last said. */
  ready(containerId: string, container: FrozenContainer): boolean
  /** True without a startup probe, else whether it has succeeded. */
  started(containerId: string, container: FrozenContainer): boolean
}

export interface ContainerStatusInput {
  readonly pod: FrozenPod
  readonly runtimeStatus: PodRuntimeStatus
  readonly runtimeName: string
  readonly previous: readonly Frozen<ContainerStatus>[] | undefined
  readonly startFailure: (containerName: string) => StartFailure | undefined
  readonly probes: ProbeResults
  /** What a running container really has; undefined: what the spec says. */
  readonly appliedResources?: ((record: ContainerRecord) => Frozen<ResourceRequirements> | undefined) | undefined
  /** The health of the devices that a container has. */
  readonly resourceStatus?: ((container: FrozenContainer) => NonNullable<ContainerStatus['allocatedResourcesStatus']>) | undefined
  /** How often a container will have been restarted that was taken out of the runtime to start anew; undefined for others. */
  readonly resetCount?: ((containerName: string) => number | undefined) | undefined
  /** Nothing of the pod will be started again. */
  readonly podIsTerminal: boolean
}

const timeOrAbsent = (ms: number) => (ms > 0 ? formatTime(ms) : undefined)

/** Waiting, running or terminated, from what the runtime says. */
function containerState(record: ContainerRecord, runtimeName: string): ContainerState {
  const containerID = `${runtimeName}://${record.id}`
  if (record.state === 'running') return { running: { startedAt: formatTime(record.startedAtMs) } }
  if (record.state === 'created') return { waiting: { reason: 'ContainerCreating' } }
  return {
    terminated: {
      exitCode: record.state === 'unknown' ? 137 : record.exitCode,
      reason: record.state === 'unknown' ? 'ContainerStatusUnknown' : record.reason || (record.exitCode === 0 ? 'Completed' : 'Error'),
      ...(record.message ? { message: record.message } : {}),
      // A container that never started has no such times: upstream prints null, which is absent here.
      startedAt: timeOrAbsent(record.startedAtMs),
      finishedAt: timeOrAbsent(record.finishedAtMs),
      containerID,
    },
  }
}

/** The statuses of one kind of containers, in the spec's order. */
export function containerStatuses(input: ContainerStatusInput, containers: readonly FrozenContainer[], kind: ContainerKind): ContainerStatus[] {
  return containers.flatMap((container) => {
    const records = input.runtimeStatus.containers.filter((record) => record.name === container.name)
    const previous = statusOf(input.previous, container.name)
    // Ephemeral containers that have not been started yet are shown as waiting too.
    const status = records.length > 0 ? fromRecords(input, container, records, previous) : withoutRecord(input, container, kind, previous)
    return [withReadiness(input, withStartFailure(input, status, container, kind), container, records[0], kind)]
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
  const resources = input.appliedResources?.(current) ?? container.resources
  const devices = input.resourceStatus?.(container) ?? []
  return {
    name: container.name,
    containerID,
    image: current.image || (container.image ?? ''),
    imageID: current.imageId,
    restartCount: current.restartCount,
    ready: false,
    started: false,
    state: withKnownMessage(containerState(current, input.runtimeName), previous),
    lastState: lastState.terminated ? { terminated: lastState.terminated } : {},
    // Also where there are none: by this a resize knows that the node can do it.
    ...(current.state === 'running'
      ? {
          resources: deepCopy<ResourceRequirements>(resources ?? {}),
          ...(container.resources?.requests ? { allocatedResources: { ...container.resources.requests } } : {}),
        }
      : {}),
    ...(user && current.state === 'running' ? { user: { linux: { ...user } } } : {}),
    ...(mounts.length > 0 ? { volumeMounts: mounts } : {}),
    ...(devices.length > 0 ? { allocatedResourcesStatus: devices } : {}),
  }
}

/** Last words live in a file that goes with the pod's directory: once told, they are kept from the status. */
function withKnownMessage(state: ContainerState, previous: Frozen<ContainerStatus> | undefined): ContainerState {
  const before = previous?.state?.terminated
  if (!state.terminated || state.terminated.message || !before?.message || before.containerID !== state.terminated.containerID) return state
  return { terminated: { ...state.terminated, message: before.message } }
}

function volumeMountStatuses(container: FrozenContainer, { status: { mounts } }: ContainerRecord): VolumeMountStatus[] {
  const recursive = (path: string) => mounts.some(({ containerPath, recursiveReadOnly }) => containerPath === path && recursiveReadOnly === true)
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
  const waiting = kind !== 'ephemeral' && (input.pod.spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating'
  const fresh = { name: container.name, image: container.image ?? '', imageID: '', restartCount: 0, ready: false, started: false, lastState: {} }
  if (!previous || (previous.state?.waiting && !input.podIsTerminal && input.resetCount?.(container.name) === undefined)) {
    const kept = previous ? { ...deepCopy<ContainerStatus>(previous), ready: false, started: false } : fresh
    return { ...kept, image: container.image ?? '', state: { waiting: { reason: waiting } } }
  }
  const restartCount = input.resetCount?.(container.name)
  if (restartCount !== undefined && !input.podIsTerminal) return resetStatus(previous, restartCount)
  if (previous.state?.terminated) return deepCopy<ContainerStatus>(previous)
  const lost = {
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: `The container could not be located when the pod was ${input.pod.metadata.deletionTimestamp ? 'deleted' : 'terminated'}.  The container used to be ${
      previous.state?.running ? 'Running' : 'Pending'
    }`,
    startedAt: undefined,
    finishedAt: undefined,
  }
  if (input.podIsTerminal) return { ...deepCopy<ContainerStatus>(previous), ready: false, started: false, state: { terminated: lost } }
  // It ran, and now there is no trace of it: it will be started again, and that counts.
  return {
    ...deepCopy<ContainerStatus>(previous),
    ready: false,
    started: false,
    restartCount: previous.restartCount + 1,
    state: { waiting: { reason: waiting } },
    lastState: { terminated: lost },
  }
}

/** All containers of the pod start anew: this one has gone from the runtime, and is still to come back. */
function resetStatus(previous: Frozen<ContainerStatus>, restartCount: number): ContainerStatus {
  const { state, lastState, ...rest } = deepCopy<ContainerStatus>(previous)
  const last = state?.terminated ? { terminated: state.terminated } : (lastState ?? {})
  return { ...rest, ready: false, started: false, restartCount, state: { waiting: { reason: 'RestartingAllContainers' } }, lastState: last }
}

/** A container that is to be started again but cannot yet is waiting, with the reason; its last run becomes the last state. */
function withStartFailure(input: ContainerStatusInput, status: ContainerStatus, container: FrozenContainer, kind: ContainerKind): ContainerStatus {
  const failure = input.startFailure(container.name)
  if (!failure || input.podIsTerminal || status.state?.running) return status
  const exitCode = status.state?.terminated?.exitCode
  const again = kind === 'init' && !isRestartableInitContainer(container) ? shouldRestartInit : shouldRestart
  if (exitCode !== undefined && (kind === 'ephemeral' || !again(input.pod, container, exitCode))) return status
  return {
    ...status,
    state: { waiting: { reason: failure.reason, ...(failure.message ? { message: failure.message } : {}) } },
    lastState: status.state?.terminated ? { terminated: status.state.terminated } : (status.lastState ?? {}),
  }
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
