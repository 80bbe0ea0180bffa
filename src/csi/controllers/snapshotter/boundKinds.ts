/** What distinguishes snapshots from groups of them where they are bound to their content (L3): fields, reasons and words. Upstream: external-snapshotter, pkg/common-controller. */
import type { ObjectReference } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Resource } from '#client/client'
import type { SecretKeys } from '../secrets.ts'
import {
  groupSnapshotGroup,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotContent,
  volumeGroupSnapshotClasses,
  volumeGroupSnapshotContents,
  volumeGroupSnapshots,
} from './groupTypes.ts'
import { annotations, groupAnnotations, snapshotSecretKeys } from './snapshotNames.ts'
import {
  type SnapshotError,
  snapshotGroup,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
} from './snapshotTypes.ts'

export interface UserObject extends KubeObject {
  status?: { error?: SnapshotError | undefined; creationTime?: string | undefined; readyToUse?: boolean | undefined } | undefined
}

export interface BoundKind<T extends UserObject, Content extends KubeObject> {
  readonly objects: Resource<T>
  readonly contents: Resource<Content>
  readonly classes: Resource<VolumeSnapshotClass>
  readonly apiGroup: string
  readonly kind: 'VolumeSnapshot' | 'VolumeGroupSnapshot'
  /** Begins the reasons of events. */
  readonly reason: 'Snapshot' | 'GroupSnapshot'
  /** In messages. */
  readonly what: 'snapshot' | 'group snapshot'
  /** Begins the message about a class that is not there. */
  readonly noClass: string
  /** Names of fields. */
  readonly fields: {
    readonly className: 'volumeSnapshotClassName' | 'volumeGroupSnapshotClassName'
    readonly reference: 'volumeSnapshotRef' | 'volumeGroupSnapshotRef'
  }
  readonly annotations: { readonly isDefault: string; readonly beingDeleted: string; readonly secretName: string; readonly secretNamespace: string }
  readonly secretKeys: SecretKeys
  /** The content that the user names. */
  given(object: Frozen<T>): string | undefined
  /** The content in the status. */
  boundTo(object: Frozen<T>): string | undefined
  className(object: Frozen<T>): string | undefined
  referenceOf(content: Frozen<Content>): Frozen<ObjectReference>
  classNameOf(content: Frozen<Content>): string | undefined
  /** An administrator made the content for a snapshot that was there. */
  isPreProvisioned(content: Frozen<Content>): boolean
  policyOf(content: Frozen<Content>): string
  /** The class of the user's object replaces that of the administrator's content. */
  readonly replacesClass: boolean
}

export const snapshotKind: BoundKind<VolumeSnapshot, VolumeSnapshotContent> = {
  ...{ objects: volumeSnapshots, contents: volumeSnapshotContents, classes: volumeSnapshotClasses, apiGroup: snapshotGroup },
  ...{ kind: 'VolumeSnapshot', reason: 'Snapshot', what: 'snapshot', noClass: 'Failed to get snapshot class' },
  fields: { className: 'volumeSnapshotClassName', reference: 'volumeSnapshotRef' },
  annotations,
  secretKeys: snapshotSecretKeys.take,
  replacesClass: true,
  given: ({ spec }) => spec.source.volumeSnapshotContentName,
  boundTo: ({ status }) => status?.boundVolumeSnapshotContentName,
  className: ({ spec }) => spec.volumeSnapshotClassName,
  referenceOf: ({ spec }) => spec.volumeSnapshotRef,
  classNameOf: ({ spec }) => spec.volumeSnapshotClassName,
  isPreProvisioned: ({ spec }) => spec.source.snapshotHandle !== undefined,
  policyOf: ({ spec }) => spec.deletionPolicy,
}

export const groupKind: BoundKind<VolumeGroupSnapshot, VolumeGroupSnapshotContent> = {
  ...{ objects: volumeGroupSnapshots, contents: volumeGroupSnapshotContents, classes: volumeGroupSnapshotClasses, apiGroup: groupSnapshotGroup },
  ...{ kind: 'VolumeGroupSnapshot', reason: 'GroupSnapshot', what: 'group snapshot', noClass: 'failed to get group snapshot class' },
  fields: { className: 'volumeGroupSnapshotClassName', reference: 'volumeGroupSnapshotRef' },
  annotations: groupAnnotations,
  secretKeys: snapshotSecretKeys.takeGroup,
  replacesClass: false,
  given: ({ spec }) => spec.source.volumeGroupSnapshotContentName,
  boundTo: ({ status }) => status?.boundVolumeGroupSnapshotContentName,
  className: ({ spec }) => spec.volumeGroupSnapshotClassName,
  referenceOf: ({ spec }) => spec.volumeGroupSnapshotRef,
  classNameOf: ({ spec }) => spec.volumeGroupSnapshotClassName,
  isPreProvisioned: ({ spec }) => spec.source.groupSnapshotHandles !== undefined,
  policyOf: ({ spec }) => spec.deletionPolicy,
}
