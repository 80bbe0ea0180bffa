/**
 * The messages of the Container Storage Interface as they look in JavaScript (L2), and the driver that answers them. A request's members are always there, with
 * their defaults, and null for an absent message; an answer may leave members out. Specification: container-storage-interface/spec v1.12.
 */
import type { StatusName } from '#grpc/grpcError'
import { GrpcRefusal } from '#grpc/grpcService'

/** A call that a driver refuses, with the code that the specification names for the reason. */
export class CsiError extends GrpcRefusal {
  constructor(code: StatusName, message: string) {
    super(code, message)
    this.name = 'CsiError'
  }
}

export type TextMap = Readonly<Record<string, string>>

export type AccessMode =
  | 'UNKNOWN'
  | 'SINGLE_NODE_WRITER'
  | 'SINGLE_NODE_READER_ONLY'
  | 'MULTI_NODE_READER_ONLY'
  | 'MULTI_NODE_SINGLE_WRITER'
  | 'MULTI_NODE_MULTI_WRITER'
  | 'SINGLE_NODE_SINGLE_WRITER'
  | 'SINGLE_NODE_MULTI_WRITER'

/** Holds `block` or `mount`. */
export interface VolumeCapability {
  readonly block?: object | null
  readonly mount?: { readonly fsType?: string; readonly mountFlags?: readonly string[]; readonly volumeMountGroup?: string } | null
  readonly accessMode?: { readonly mode: AccessMode } | null
}

/** Bytes; 0 is no bound. */
export interface CapacityRange {
  readonly requiredBytes: number
  readonly limitBytes: number
}

/** Holds `snapshot` or `volume`. */
export interface VolumeContentSource {
  readonly snapshot?: { readonly snapshotId: string } | null
  readonly volume?: { readonly volumeId: string } | null
}

export interface Topology {
  readonly segments: TextMap
}

export interface Volume {
  readonly capacityBytes: number
  readonly volumeId: string
  readonly volumeContext?: TextMap
  readonly contentSource?: VolumeContentSource | undefined
  readonly accessibleTopology?: readonly Topology[]
}

export interface VolumeCondition {
  readonly abnormal: boolean
  readonly message: string
}

export interface VolumeStatus {
  readonly publishedNodeIds?: readonly string[]
  readonly volumeCondition?: VolumeCondition
}

export interface Timestamp {
  readonly seconds: number
  readonly nanos: number
}

export interface Snapshot {
  readonly sizeBytes: number
  readonly snapshotId: string
  readonly sourceVolumeId: string
  readonly creationTime: Timestamp
  readonly readyToUse: boolean
  readonly groupSnapshotId?: string | undefined
}

export interface VolumeGroupSnapshot {
  readonly groupSnapshotId: string
  readonly snapshots: readonly Snapshot[]
  readonly creationTime: Timestamp
  readonly readyToUse: boolean
}

export interface VolumeUsage {
  readonly available?: number
  readonly total?: number
  readonly used: number
  readonly unit: 'BYTES' | 'INODES'
}

export interface Page {
  /** 0: no bound. */
  readonly maxEntries: number
  readonly startingToken: string
}

interface OfVolume {
  readonly volumeId: string
}

interface WithSecrets {
  readonly secrets: TextMap
}

export interface CreateVolumeRequest extends WithSecrets {
  readonly name: string
  readonly capacityRange: CapacityRange | null
  readonly volumeCapabilities: readonly VolumeCapability[]
  readonly parameters: TextMap
  readonly volumeContentSource: VolumeContentSource | null
  readonly accessibilityRequirements: { readonly requisite: readonly Topology[]; readonly preferred: readonly Topology[] } | null
  readonly mutableParameters: TextMap
}

export interface ControllerPublishVolumeRequest extends OfVolume, WithSecrets {
  readonly nodeId: string
  readonly volumeCapability: VolumeCapability
  readonly readonly: boolean
  readonly volumeContext: TextMap
}

export interface ValidateVolumeCapabilitiesRequest extends OfVolume, WithSecrets {
  readonly volumeContext: TextMap
  readonly volumeCapabilities: readonly VolumeCapability[]
  readonly parameters: TextMap
  readonly mutableParameters: TextMap
}

export interface ValidateVolumeCapabilitiesResponse {
  /** Absent: the volume does not have these capabilities, and `message` says why. */
  readonly confirmed?: {
    readonly volumeContext?: TextMap
    readonly volumeCapabilities: readonly VolumeCapability[]
    readonly parameters?: TextMap
    readonly mutableParameters?: TextMap
  }
  readonly message?: string
}

export interface NodeStageVolumeRequest extends OfVolume, WithSecrets {
  readonly publishContext: TextMap
  readonly stagingTargetPath: string
  readonly volumeCapability: VolumeCapability
  readonly volumeContext: TextMap
}

export interface NodePublishVolumeRequest extends NodeStageVolumeRequest {
  readonly targetPath: string
  readonly readonly: boolean
}

export interface NodeExpandVolumeRequest extends OfVolume, WithSecrets {
  readonly volumePath: string
  readonly capacityRange: CapacityRange | null
  readonly stagingTargetPath: string
  readonly volumeCapability: VolumeCapability | null
}

type Answer<Response> = Response | Promise<Response>
type Done = void | Promise<void>

/** Each method may be absent; a capability is reported when its methods are there. */
export interface CsiController {
  createVolume?(request: CreateVolumeRequest): Answer<{ readonly volume: Volume }>
  deleteVolume?(request: OfVolume & WithSecrets): Done
  controllerPublishVolume?(request: ControllerPublishVolumeRequest): Answer<{ readonly publishContext?: TextMap }>
  controllerUnpublishVolume?(request: OfVolume & WithSecrets & { readonly nodeId: string }): Done
  validateVolumeCapabilities(request: ValidateVolumeCapabilitiesRequest): Answer<ValidateVolumeCapabilitiesResponse>
  listVolumes?(request: Page): Answer<{ readonly entries: readonly { readonly volume: Volume; readonly status?: VolumeStatus }[]; readonly nextToken?: string }>
  getCapacity?(request: {
    readonly volumeCapabilities: readonly VolumeCapability[]
    readonly parameters: TextMap
    readonly accessibleTopology: Topology | null
  }): Answer<{ readonly availableCapacity: number; readonly maximumVolumeSize?: { readonly value: number } }>
  createSnapshot?(request: WithSecrets & { readonly sourceVolumeId: string; readonly name: string; readonly parameters: TextMap }): Answer<{
    readonly snapshot: Snapshot
  }>
  deleteSnapshot?(request: WithSecrets & { readonly snapshotId: string }): Done
  listSnapshots?(request: Page & WithSecrets & { readonly sourceVolumeId: string; readonly snapshotId: string }): Answer<{
    readonly entries: readonly { readonly snapshot: Snapshot }[]
    readonly nextToken?: string
  }>
  getSnapshot?(request: WithSecrets & { readonly snapshotId: string }): Answer<{ readonly snapshot: Snapshot }>
  controllerExpandVolume?(
    request: OfVolume & WithSecrets & { readonly capacityRange: CapacityRange; readonly volumeCapability: VolumeCapability | null },
  ): Answer<{ readonly capacityBytes: number; readonly nodeExpansionRequired: boolean }>
  controllerGetVolume?(request: OfVolume): Answer<{ readonly volume: Volume; readonly status: VolumeStatus }>
  controllerModifyVolume?(request: OfVolume & WithSecrets & { readonly mutableParameters: TextMap }): Done
}

export interface CsiGroupController {
  createVolumeGroupSnapshot(
    request: WithSecrets & { readonly name: string; readonly sourceVolumeIds: readonly string[]; readonly parameters: TextMap },
  ): Answer<{
    readonly groupSnapshot: VolumeGroupSnapshot
  }>
  deleteVolumeGroupSnapshot(request: WithSecrets & { readonly groupSnapshotId: string; readonly snapshotIds: readonly string[] }): Done
  getVolumeGroupSnapshot(request: WithSecrets & { readonly groupSnapshotId: string; readonly snapshotIds: readonly string[] }): Answer<{
    readonly groupSnapshot: VolumeGroupSnapshot
  }>
}

export interface CsiNode {
  nodeStageVolume?(request: NodeStageVolumeRequest): Done
  nodeUnstageVolume?(request: OfVolume & { readonly stagingTargetPath: string }): Done
  nodePublishVolume(request: NodePublishVolumeRequest): Done
  nodeUnpublishVolume(request: OfVolume & { readonly targetPath: string }): Done
  nodeGetVolumeStats?(request: OfVolume & { readonly volumePath: string; readonly stagingTargetPath: string }): Answer<{
    readonly usage: readonly VolumeUsage[]
    readonly volumeCondition?: VolumeCondition
  }>
  nodeExpandVolume?(request: NodeExpandVolumeRequest): Answer<{ readonly capacityBytes: number }>
  nodeGetInfo(): Answer<{ readonly nodeId: string; readonly maxVolumesPerNode?: number; readonly accessibleTopology?: Topology }>
}

/** Capabilities that no method shows. */
export interface CsiFeatures {
  readonly topology?: boolean
  readonly clones?: boolean
  readonly publishReadonly?: boolean
  readonly publishedNodes?: boolean
  readonly volumeCondition?: boolean
  /** The driver knows SINGLE_NODE_SINGLE_WRITER and SINGLE_NODE_MULTI_WRITER. */
  readonly singleNodeMultiWriter?: boolean
  /** The driver gives volumes to the group of `volumeMountGroup` itself. */
  readonly volumeMountGroup?: boolean
  /** When a volume may grow. */
  readonly expansion?: 'ONLINE' | 'OFFLINE'
}

export interface CsiDriver {
  /** In the form of a domain: `hostpath.csi.example.com`. */
  readonly name: string
  readonly version: string
  readonly features?: CsiFeatures
  readonly controller?: CsiController
  readonly groupController?: CsiGroupController
  readonly node?: CsiNode
  /** False while the driver starts. @throws CsiError FAILED_PRECONDITION when it cannot work */
  isReady?(): boolean | Promise<boolean>
}
