/**
 * What the runtime knows about one pod (L3): sandboxes and containers, newest first. The sync loop's plans read it.
 * Upstream: kubelet/container PodStatus, kuberuntime getPodContainerStatuses (v1.36).
 */
import type { PodSandboxStatus, RuntimeContainerStatus } from '#grpc/criTypes'
import { annotationKeys, labelKeys } from './runtimeLabels.ts'
import type { RuntimeService } from './runtimeService.ts'

export type ContainerRecordState = 'created' | 'running' | 'exited' | 'unknown'

export interface ContainerRecord {
  readonly id: string
  readonly name: string
  readonly sandboxId: string
  readonly state: ContainerRecordState
  readonly restartCount: number
  readonly hash: string
  /** Milliseconds since the epoch; 0 before the event. */
  readonly createdAtMs: number
  readonly startedAtMs: number
  readonly finishedAtMs: number
  readonly exitCode: number
  readonly reason: string
  readonly message: string
  readonly image: string
  readonly imageId: string
  readonly status: RuntimeContainerStatus
}

export interface PodRuntimeStatus {
  readonly uid: string
  readonly sandboxes: readonly PodSandboxStatus[]
  readonly containers: readonly ContainerRecord[]
}

/** The newest container of that name. */
export function findContainer(status: PodRuntimeStatus, name: string): ContainerRecord | undefined {
  return status.containers.find((container) => container.name === name)
}

const states = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
} as const

const toMs = (nanoseconds: number) => Math.floor(nanoseconds / 1e6)

/** A container as the runtime reports it, including the kubelet's labels and annotations. */
export function containerRecord(status: RuntimeContainerStatus, sandboxId: string): ContainerRecord {
  return {
    id: status.id,
    name: status.labels[labelKeys.containerName] ?? status.metadata.name,
    sandboxId,
    state: states[status.state],
    restartCount: Number(status.annotations[annotationKeys.restartCount] ?? status.metadata.attempt),
    hash: status.annotations[annotationKeys.hash] ?? '',
    createdAtMs: toMs(status.createdAt),
    startedAtMs: toMs(status.startedAt),
    finishedAtMs: toMs(status.finishedAt),
    exitCode: status.exitCode,
    reason: status.reason,
    message: status.message,
    image: status.image.image,
    imageId: status.imageRef,
    status,
  }
}

/** Asks the runtime about one pod. Things that vanish meanwhile are left out. */
export async function readPodRuntimeStatus(runtime: RuntimeService, uid: string): Promise<PodRuntimeStatus> {
  const [sandboxes, containers] = await Promise.all([runtime.listPodSandbox(uid), runtime.listContainers(uid)])
  const [sandboxStatuses, records] = await Promise.all([
    Promise.all(sandboxes.map((sandbox) => runtime.podSandboxStatus(sandbox.id))),
    Promise.all(
      containers.map(async (container) => {
        const status = await runtime.containerStatus(container.id)
        return status && containerRecord(status, container.podSandboxId)
      }),
    ),
  ])
  return {
    uid,
    sandboxes: sandboxStatuses.filter((status) => status !== undefined).sort((a, b) => b.metadata.attempt - a.metadata.attempt || b.createdAt - a.createdAt),
    containers: records.filter((record) => record !== undefined).sort((a, b) => b.status.createdAt - a.status.createdAt),
  }
}

/** The pod's addresses by its ready sandbox; none for host network, where the runtime reports none. */
export function sandboxIPs(status: PodRuntimeStatus): string[] {
  const ready = status.sandboxes.find((sandbox) => sandbox.state === 'SANDBOX_READY')
  if (!ready?.network?.ip) return []
  return [ready.network.ip, ...ready.network.additionalIps.map((additional) => additional.ip)]
}
