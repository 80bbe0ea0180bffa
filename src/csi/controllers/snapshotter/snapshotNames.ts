/** Finalizers, annotations and keys of snapshots and of groups of them (L3). Upstream: external-snapshotter, pkg/utils/util.go. */
import { reservedPrefix } from '../provisioner/parameters.ts'
import type { SecretKeys } from '../secrets.ts'

const prefix = 'snapshot.storage.kubernetes.io/'
const groupPrefix = 'groupsnapshot.storage.kubernetes.io/'

export const finalizers = {
  content: `${prefix}volumesnapshotcontent-bound-protection`,
  bound: `${prefix}volumesnapshot-bound-protection`,
  asSource: `${prefix}volumesnapshot-as-source-protection`,
  claim: `${prefix}pvc-as-source-protection`,
  inGroup: `${prefix}volumesnapshot-in-group-protection`,
  groupContent: `${groupPrefix}volumegroupsnapshotcontent-bound-protection`,
  boundGroup: `${groupPrefix}volumegroupsnapshot-bound-protection`,
} as const

export const annotations = {
  isDefault: `${prefix}is-default-class`,
  beingDeleted: `${prefix}volumesnapshot-being-deleted`,
  beingCreated: `${prefix}volumesnapshot-being-created`,
  secretName: `${prefix}deletion-secret-name`,
  secretNamespace: `${prefix}deletion-secret-namespace`,
  /** Its snapshot belongs to a group, which is taken as a whole. */
  group: 'groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle',
} as const

export const groupAnnotations = {
  isDefault: `${groupPrefix}is-default-class`,
  beingDeleted: `${groupPrefix}volumegroupsnapshot-being-deleted`,
  beingCreated: `${groupPrefix}volumegroupsnapshot-being-created`,
  secretName: `${groupPrefix}deletion-secret-name`,
  secretNamespace: `${groupPrefix}deletion-secret-namespace`,
} as const

const keysOf = (name: string, part: string): SecretKeys => ({
  name,
  secretName: `${reservedPrefix}${part}-secret-name`,
  secretNamespace: `${reservedPrefix}${part}-secret-namespace`,
})

export const snapshotSecretKeys = {
  take: keysOf('Snapshotter', 'snapshotter'),
  list: keysOf('SnapshotterList', 'snapshotter-list'),
  takeGroup: keysOf('GroupSnapshotter', 'group-snapshotter'),
  getGroup: keysOf('GroupSnapshotterGet', 'group-snapshotter-get'),
} as const
