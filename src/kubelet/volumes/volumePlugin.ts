/**
 * The interface of volume types (L3). Every type supports some volumes and sets them up below the pod's directory; everything else is an optional member,
 * and volumeOperations.ts calls the members that a type has, in upstream's order. Adding a type is one file and one line in index.ts.
 * Upstream: pkg/volume/plugins.go, pkg/volume/volume.go (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim, Volume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import type { VolumeMeasures, VolumeUsage } from '../core/volumeStats.ts'
import type { CsiDrivers } from './csi/drivers.ts'
import type { PodCertificates } from './podCertificates.ts'
import type { TokenManager } from './tokenManager.ts'
import type { VolumesInUse } from './volumesInUse.ts'

export type FrozenVolume = Frozen<Volume>

/** A volume after its claim was resolved: the pod's own source, or a PersistentVolume. Upstream: volume.Spec. */
export interface VolumeSpec {
  /** The PersistentVolume's name, else the pod's name for the volume. Events and directories use it. */
  readonly name: string
  readonly volume?: FrozenVolume | undefined
  readonly persistentVolume?: Frozen<PersistentVolume> | undefined
  /** The claim that led to the PersistentVolume. */
  readonly claim?: Frozen<PersistentVolumeClaim> | undefined
  /** The claim's source in the pod is read-only: no container may write. */
  readonly readOnly: boolean
}

export interface VolumeContext {
  readonly context: KubeletContext
  readonly host: KubeletHost
  readonly tokens: TokenManager
  readonly csi: CsiDrivers
  readonly inUse: VolumesInUse
  /** Starts them at the first call. */
  certificates(): Promise<PodCertificates>
}

export interface VolumeRequest {
  readonly pod: FrozenPod
  readonly spec: VolumeSpec
  /** The volume's own directory, as a path of the node. */
  readonly directory: string
  /** This kubelet has set the volume up before: only its content may have changed. */
  readonly refresh: boolean
  /** The result of the plugin's attachment; absent without one. */
  readonly devicePath?: string | undefined
  /** The path at which the plugin has staged the volume; absent without staging. */
  readonly stagingPath?: string | undefined
}

export interface TearDownRequest {
  /** The result of the plugin's reconstruct; without one only the name is known. */
  readonly spec: VolumeSpec
  readonly directory: string
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
  /** setUp is called again while the pod runs, and the pod does not wait for it. */
  readonly isRemounted?: boolean | undefined
  /** The volume counts as ephemeral storage of its pod. */
  readonly isLocalEphemeral?: boolean | undefined
  /** A group that owns the volume, from the PersistentVolume's annotation: containers get it as a supplemental group. */
  readonly group?: number | undefined
}

/** By the pod's name for the volume. */
export type MountedVolumes = ReadonlyMap<string, MountedVolume>

/** Waits until the attach/detach controller has attached the volume to this node. Upstream: AttachableVolumePlugin, Attacher.WaitForAttach. */
export interface VolumeAttachments {
  /** The volume's name in the Node's status, without the plugin's in front; undefined: it is never attached. */
  uniqueName(spec: VolumeSpec): string | undefined
  isAttachable(volumes: VolumeContext, spec: VolumeSpec): Promise<boolean>
  /** Returns the device's path on the node. @throws Error while the volume is not attached; the kubelet tries again after a back-off. */
  waitForAttach(volumes: VolumeContext, request: VolumeRequest): Promise<string>
}

/**
 * Mounts a volume once for all pods of the node, before each pod gets its own mount of it. Upstream: DeviceMountableVolumePlugin, CSI's NodeStageVolume.
 * Calls for one volume never overlap, and neither do setUp and tearDown of a type with staging.
 */
export interface VolumeStaging {
  /** Where the volume is staged, as a path of the node; undefined: this volume of the type is not staged. */
  path(volumes: VolumeContext, spec: VolumeSpec): string | undefined
  /** Idempotent. `request.stagingPath` is set. */
  mountDevice(volumes: VolumeContext, request: VolumeRequest): Promise<void>
  /** Volumes that an earlier kubelet may have staged. Absent: only directories of pods lead to them. */
  staged?(volumes: VolumeContext): Promise<readonly { readonly spec: VolumeSpec; readonly stagingPath: string }[]>
  /** Called after the last pod of the node that used the volume is torn down. Idempotent. When it fails, it is called again later. */
  unmountDevice(volumes: VolumeContext, spec: VolumeSpec, stagingPath: string): Promise<void>
}

/** Grows the filesystem of a volume after its PersistentVolume has grown. Upstream: NodeExpandableVolumePlugin. */
export interface VolumeExpansion {
  /** @param path the mounted volume of the pod @param newSize a quantity @throws ExpansionRefusal when nothing is under way, and the volume has its old size */
  nodeExpand(volumes: VolumeContext, request: VolumeRequest, path: string, newSize: string): Promise<void>
}

export interface VolumePlugin {
  /** Upstream's plugin name, from which the name of the directory is made: 'kubernetes.io/empty-dir'. */
  readonly name: string
  supports(spec: VolumeSpec): boolean
  /** Idempotent. Returns the node's path that containers mount: the directory, or another path. */
  setUp(volumes: VolumeContext, request: VolumeRequest): Promise<string>
  /** The same for volumeMode Block; returns the device's path. Absent: the type has no block volumes. */
  mapDevice?(volumes: VolumeContext, request: VolumeRequest): Promise<string>
  /**
   * setUp is called again while the pod runs, because the content is read from API objects that may change. A change of such an object triggers a sync of
   * the pod, so that failures need no back-off. Upstream: RequiresRemount.
   */
  readonly requiresRemount?: boolean
  /** The same for types of which only some volumes need it. Such a set-up may take long: the pod does not wait for it. */
  isRemounted?(volumes: VolumeContext, spec: VolumeSpec): Promise<boolean>
  /** Containers only read the volume, even if their mounts allow writing. */
  readonly readOnly?: boolean
  /** Reverses what setUp did at the directory. The caller removes the directory itself. */
  tearDown?(volumes: VolumeContext, request: TearDownRequest): Promise<void>
  readonly attachments?: VolumeAttachments
  readonly staging?: VolumeStaging
  readonly expansion?: VolumeExpansion
  /** Measures a mounted volume. Absent: the type has no statistics. Upstream: MetricsProvider. */
  statistics?(volumes: VolumeContext, volume: MountedVolume, measures: VolumeMeasures): Promise<VolumeUsage>
  /** Whether the volume counts as ephemeral storage of its pod. Absent: never. Upstream: IsLocalEphemeralVolume. */
  isLocalEphemeral?(spec: VolumeSpec): boolean
  /**
   * Rebuilds from the volume's directory what tearDown and unmountDevice need to know, because the API object may be gone or the kubelet may have
   * restarted. Absent: the name of the directory is enough. Upstream: ConstructVolumeSpec.
   */
  reconstruct?(volumes: VolumeContext, directory: string): Promise<VolumeSpec>
}

/** The pod's fsGroup, if it has one. */
export function fsGroupOf(pod: FrozenPod): number | undefined {
  return pod.spec.securityContext?.fsGroup
}

/** Statistics of a type whose volumes are directories on the node's own filesystem. */
export function directoryStatistics(_volumes: VolumeContext, { path }: MountedVolume, measures: VolumeMeasures): Promise<VolumeUsage> {
  return measures.directory(path)
}
