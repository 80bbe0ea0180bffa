/** The objects of snapshot.storage.k8s.io/v1 (L3), which are custom resources. Upstream: external-snapshotter, client/apis/volumesnapshot/v1. */
import type { ObjectReference } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { clusterScoped, namespaced } from '#client/builtIn'

export const snapshotGroup = 'snapshot.storage.k8s.io'

export interface SnapshotError {
  readonly time?: string | undefined
  readonly message?: string | undefined
}

export interface VolumeSnapshot extends KubeObject {
  spec: {
    source: { persistentVolumeClaimName?: string | undefined; volumeSnapshotContentName?: string | undefined }
    volumeSnapshotClassName?: string | undefined
  }
  status?:
    | {
        boundVolumeSnapshotContentName?: string | undefined
        creationTime?: string | undefined
        readyToUse?: boolean | undefined
        restoreSize?: string | undefined
        error?: SnapshotError | undefined
        volumeGroupSnapshotName?: string | undefined
      }
    | undefined
}

export interface VolumeSnapshotContent extends KubeObject {
  spec: {
    volumeSnapshotRef: ObjectReference
    deletionPolicy: string
    driver: string
    volumeSnapshotClassName?: string | undefined
    source: { volumeHandle?: string | undefined; snapshotHandle?: string | undefined }
    sourceVolumeMode?: string | undefined
  }
  status?:
    | {
        snapshotHandle?: string | undefined
        /** Nanoseconds since 1970. */
        creationTime?: number | undefined
        restoreSize?: number | undefined
        readyToUse?: boolean | undefined
        error?: SnapshotError | undefined
        volumeGroupSnapshotHandle?: string | undefined
      }
    | undefined
}

export interface VolumeSnapshotClass extends KubeObject {
  driver: string
  parameters?: Record<string, string> | undefined
  deletionPolicy: string
}

export const volumeSnapshots = namespaced<VolumeSnapshot>(snapshotGroup, 'v1', 'volumesnapshots', 'VolumeSnapshot')
export const volumeSnapshotContents = clusterScoped<VolumeSnapshotContent>(snapshotGroup, 'v1', 'volumesnapshotcontents', 'VolumeSnapshotContent')
export const volumeSnapshotClasses = clusterScoped<VolumeSnapshotClass>(snapshotGroup, 'v1', 'volumesnapshotclasses', 'VolumeSnapshotClass')

/** A claim of this kind is filled from the snapshot. */
export const isSnapshotReference = ({ apiGroup, kind }: { readonly apiGroup?: string | undefined; readonly kind: string }) =>
  kind === 'VolumeSnapshot' && (apiGroup ?? snapshotGroup) === snapshotGroup
