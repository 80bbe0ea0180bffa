/** What the controllers of a driver may do (L3); docs/csi.md shows it. */
import type { PolicyRule } from '#api/gen/types/rbac.v1'

export const csiControllerRules: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
  { apiGroups: ['storage.k8s.io'], resources: ['csinodes', 'storageclasses'], verbs: ['list', 'watch'] },
  { apiGroups: ['storage.k8s.io'], resources: ['csistoragecapacities'], verbs: ['list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: ['storage.k8s.io'], resources: ['volumeattributesclasses'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments'], verbs: ['list', 'watch', 'patch'] },
  { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments/status'], verbs: ['patch'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots/status'], verbs: ['patch'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotcontents'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotcontents/status'], verbs: ['patch'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotclasses'], verbs: ['list', 'watch'] },
  { apiGroups: ['groupsnapshot.storage.k8s.io'], resources: ['volumegroupsnapshots'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['groupsnapshot.storage.k8s.io'], resources: ['volumegroupsnapshots/status'], verbs: ['patch'] },
  { apiGroups: ['groupsnapshot.storage.k8s.io'], resources: ['volumegroupsnapshotcontents'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: ['groupsnapshot.storage.k8s.io'], resources: ['volumegroupsnapshotcontents/status'], verbs: ['patch'] },
  { apiGroups: ['groupsnapshot.storage.k8s.io'], resources: ['volumegroupsnapshotclasses'], verbs: ['list', 'watch'] },
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['create'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'patch'] },
]
