/**
 * What the sync loop needs of the node's resources (L3): whether a pod can have what it asks for, what each container then gets, what the node has.
 * resourceManager.ts does it. Upstream: kubelet/cm/container_manager.go (v1.36).
 */
import type { ContainerStatus } from '#api/gen/types/core.v1'
import type { ContainerOptions } from './containerOptions.ts'
import type { FrozenContainer, FrozenPod } from './containers.ts'
import type { PodRuntimeStatus } from './podRuntimeStatus.ts'
import type { Refusal } from './refusal.ts'

export interface ResourceManager {
  /**
   * Allocates for all containers of a pod that is new to the node; undefined: it has all it asks for.
   * @param fits asked first, when no other pod is being admitted
   */
  admit(pod: FrozenPod, fits: () => Refusal | undefined): Promise<Refusal | undefined>
  /** Has DRA drivers make the pod's claims ready. @throws Error while that is not possible */
  preparePod(pod: FrozenPod): Promise<void>
  /** What the container gets in addition to its spec. @throws Error when a plugin refuses */
  containerOptions(pod: FrozenPod, container: FrozenContainer): Promise<ContainerOptions>
  /** Moves running containers to the CPUs that they may use now. */
  reconcile(pod: FrozenPod, status: PodRuntimeStatus): Promise<void>
  /** Takes back everything; DRA drivers may need another try, which is an Error. */
  release(podUid: string): Promise<void>
  /** Of pods that are gone, after a restart. */
  releaseOthers(isKnown: (podUid: string) => boolean): Promise<void>
  status(pod: FrozenPod, container: FrozenContainer): NonNullable<ContainerStatus['allocatedResourcesStatus']>
  /** Extended resources of device plugins and huge pages: resource → quantity. */
  capacity(): Readonly<Record<string, string>>
  allocatable(): Readonly<Record<string, string>>
  readonly cpuPolicy: string
  readonly memoryPolicy: string
  /** Calls back when capacity or allocatable may answer something else. */
  onChange(listener: () => void): void
  /** The sockets of plugins and agents, until aborted. */
  run(signal: AbortSignal): Promise<void>
}
