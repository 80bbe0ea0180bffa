/** How a VolumeSnapshot is tied to its VolumeGroupSnapshot (L3, pure). Upstream: external-snapshotter, pkg/utils/vgs.go. */
import { createHash } from 'node:crypto'
import type { OwnerReference } from '#api/gen/types/meta.v1'
import type { Frozen } from '#api/machinery/meta'
import { groupSnapshotGroup, type VolumeGroupSnapshot } from './groupTypes.ts'
import type { VolumeSnapshot } from './snapshotTypes.ts'

const apiVersion = `${groupSnapshotGroup}/v1`
const kind = 'VolumeGroupSnapshot'

/** The reference to the group that owns the snapshot. */
export function owningGroupOf({ metadata }: Frozen<VolumeSnapshot>): Frozen<OwnerReference> | undefined {
  return metadata.ownerReferences?.find((owner) => owner.kind === kind && owner.apiVersion === apiVersion)
}

export function ownedBy({ metadata }: Frozen<VolumeGroupSnapshot>): OwnerReference {
  return { apiVersion, kind, name: metadata.name ?? '', uid: metadata.uid ?? '' }
}

/** Part of the names of the snapshot of this volume and of its content. */
export function memberId({ metadata }: Frozen<VolumeGroupSnapshot>, volumeHandle: string): string {
  return createHash('sha256').update(`${metadata.uid}${volumeHandle}`).digest('hex')
}
