/** The objects of groupsnapshot.storage.k8s.io/v1 (L3), which are custom resources. Upstream: external-snapshotter, client/apis/volumegroupsnapshot/v1. */
import type { ObjectReference } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { KubeObject } from '#api/machinery/meta'
import { clusterScoped, namespaced } from '#client/builtIn'
import type { SnapshotError, VolumeSnapshotClass } from './snapshotTypes.ts'

export const groupSnapshotGroup = 'groupsnapshot.storage.k8s.io'

export interface VolumeGroupSnapshot extends KubeObject {
  spec: {
    source: { selector?: LabelSelector | undefined; volumeGroupSnapshotContentName?: string | undefined }
    volumeGroupSnapshotClassName?: string | undefined
  }
  status?:
    | {
        boundVolumeGroupSnapshotContentName?: string | undefined
        creationTime?: string | undefined
        readyToUse?: boolean | undefined
        error?: SnapshotError | undefined
      }
    | undefined
}

/** One snapshot of the group, as the driver describes it. */
export interface MemberInfo {
  readonly volumeHandle?: string | undefined
  readonly snapshotHandle?: string | undefined
  /** Nanoseconds since 1970. */
  readonly creationTime?: number | undefined
  readonly restoreSize?: number | undefined
  readonly readyToUse?: boolean | undefined
}

export interface VolumeGroupSnapshotContent extends KubeObject {
  spec: {
    volumeGroupSnapshotRef: ObjectReference
    deletionPolicy: string
    driver: string
    volumeGroupSnapshotClassName?: string | undefined
    source: {
      volumeHandles?: string[] | undefined
      groupSnapshotHandles?: { volumeGroupSnapshotHandle: string; volumeSnapshotHandles: string[] } | undefined
    }
  }
  status?:
    | {
        volumeGroupSnapshotHandle?: string | undefined
        creationTime?: string | undefined
        readyToUse?: boolean | undefined
        error?: SnapshotError | undefined
        volumeSnapshotInfoList?: MemberInfo[] | undefined
      }
    | undefined
}

export type VolumeGroupSnapshotClass = VolumeSnapshotClass

export const volumeGroupSnapshots = namespaced<VolumeGroupSnapshot>(groupSnapshotGroup, 'v1', 'volumegroupsnapshots', 'VolumeGroupSnapshot')
export const volumeGroupSnapshotContents = clusterScoped<VolumeGroupSnapshotContent>(
  groupSnapshotGroup,
  'v1',
  'volumegroupsnapshotcontents',
  'VolumeGroupSnapshotContent',
)
export const volumeGroupSnapshotClasses = clusterScoped<VolumeGroupSnapshotClass>(
  groupSnapshotGroup,
  'v1',
  'volumegroupsnapshotclasses',
  'VolumeGroupSnapshotClass',
)
