/** What a volume type is (L3): how it recognises a volume, sets it up below the pod's directory and takes it down again. */
import type { PersistentVolume, Volume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import type { Exclusive } from './exclusive.ts'
import type { TokenManager } from './tokenManager.ts'

export type FrozenVolume = Frozen<Volume>

/** A volume after its claim was followed: what the pod says itself, or a PersistentVolume. Upstream: volume.Spec. */
export interface VolumeSpec {
  /** The PersistentVolume's name, else the pod's name for the volume: events and directories use it. */
  readonly name: string
  readonly volume?: FrozenVolume | undefined
  readonly persistentVolume?: Frozen<PersistentVolume> | undefined
  /** The claim's source says so: no container may write. */
  readonly readOnly: boolean
}

export interface VolumeContext {
  readonly context: KubeletContext
  readonly host: KubeletHost
  readonly tokens: TokenManager
  /** For what pods of the node share: one at a time under a key. */
  readonly exclusive: Exclusive
}

export interface VolumeRequest {
  readonly pod: FrozenPod
  readonly spec: VolumeSpec
  /** The volume's own directory, as a path of the node. */
  readonly directory: string
  /** It has been set up before by this kubelet: only what may have changed is left to do. */
  readonly refresh: boolean
}

/** A volume that containers can use. */
export interface MountedVolume {
  /** The inner name, as in VolumeSpec. */
  readonly name: string
  /** The name of its type. */
  readonly plugin: string
  /** The node's path that containers mount; of a block volume: the device. */
  readonly path: string
  /** No container may write. */
  readonly readOnly: boolean
  readonly block: boolean
  /** A group that owns the volume, from the PersistentVolume's annotation: containers get it as a supplemental group. */
  readonly group?: number | undefined
}

/** By the pod's name for the volume. */
export type MountedVolumes = ReadonlyMap<string, MountedVolume>

export interface VolumePlugin {
  /** Upstream's plugin name, which is also the directory's: 'kubernetes.io/empty-dir'. */
  readonly name: string
  supports(spec: VolumeSpec): boolean
  /** Idempotent. Returns the node's path that containers mount: the directory, or somewhere else. */
  setUp(volumes: VolumeContext, request: VolumeRequest): Promise<string>
  /** The same for volumeMode Block; returns the device's path. Absent: the type has no block volumes. */
  mapDevice?(volumes: VolumeContext, request: VolumeRequest): Promise<string>
  /** True when the content may change while the pod runs, so that setUp is called again. */
  readonly refreshes: boolean
  /** Containers only read it, whatever their mounts say. */
  readonly readOnly?: boolean
  /** Takes down what setUp did at `directory`. The directory itself is removed by the caller. */
  tearDown?(volumes: VolumeContext, directory: string): Promise<void>
}

/** The pod's fsGroup, if it has one. */
export function fsGroupOf(pod: FrozenPod): number | undefined {
  return pod.spec.securityContext?.fsGroup
}
