/** The kinds through which CSI drivers and their volumes are known (L1). Upstream: pkg/registry/storage, pkg/apis/storage/v1/defaults.go (v1.36). */
import type { CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment } from '#api/gen/types/storage.v1'
import { fieldError } from '#api/machinery/fieldPath'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, boolean, integer, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { keepStatus, statusStrategy } from '../rules.ts'

const group = 'storage.k8s.io'

export const csiDriver = defineKind<CSIDriver>({
  group,
  kind: 'CSIDriver',
  columns: [
    nameColumn,
    boolean('AttachRequired', (obj) => obj.spec?.attachRequired ?? true),
    boolean('PodInfoOnMount', (obj) => obj.spec?.podInfoOnMount ?? false),
    boolean('StorageCapacity', (obj) => obj.spec?.storageCapacity ?? false),
    text('TokenRequests', (obj) => (obj.spec?.tokenRequests ?? []).map((request) => request.audience).join(',') || unset),
    boolean('RequiresRepublish', (obj) => obj.spec?.requiresRepublish ?? false),
    text('Modes', (obj) => (obj.spec?.volumeLifecycleModes ?? []).join(',') || '<none>'),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.spec.attachRequired ??= true
    obj.spec.podInfoOnMount ??= false
    obj.spec.storageCapacity ??= false
    obj.spec.requiresRepublish ??= false
    obj.spec.seLinuxMount ??= false
    obj.spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType'
    if (!obj.spec.volumeLifecycleModes?.length) obj.spec.volumeLifecycleModes = ['Persistent']
  },
  validateUpdate: ({ obj, old, path }) => [
    ...validateImmutable(obj.spec.attachRequired, old.spec.attachRequired, path.child('spec', 'attachedRequired')),
    ...validateImmutable(obj.spec.volumeLifecycleModes, old.spec.volumeLifecycleModes, path.child('spec', 'volumeLifecycleModes')),
  ],
})

export const csiNode = defineKind<CSINode>({
  group,
  kind: 'CSINode',
  generation: false,
  columns: [nameColumn, integer('Drivers', (obj) => obj.spec?.drivers?.length), ageColumn],
})

export const csiStorageCapacity = defineKind<CSIStorageCapacity>({
  group,
  kind: 'CSIStorageCapacity',
  generation: false,
  columns: [nameColumn, text('StorageClassName', (obj) => obj.storageClassName ?? ''), text('Capacity', (obj) => obj.capacity ?? unset)],
  validate: ({ obj, path }) => (obj.storageClassName ? [] : [fieldError.required(path.child('storageClassName'))]),
  validateUpdate: ({ obj, old, path }) => [
    ...validateImmutable(obj.storageClassName, old.storageClassName, path.child('storageClassName')),
    ...validateImmutable(obj.nodeTopology, old.nodeTopology, path.child('nodeTopology')),
  ],
})

export const volumeAttachment = defineKind<VolumeAttachment>({
  group,
  kind: 'VolumeAttachment',
  generation: false,
  columns: [
    nameColumn,
    { ...text<VolumeAttachment>('Attacher', (obj) => obj.spec?.attacher ?? ''), format: 'name' },
    text('PV', (obj) => obj.spec?.source?.persistentVolumeName ?? ''),
    text('Node', (obj) => obj.spec?.nodeName ?? ''),
    boolean('Attached', (obj) => obj.status?.attached ?? false),
    ageColumn,
  ],
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => [
    ...(obj.spec?.attacher ? [] : [fieldError.required(path.child('spec', 'attacher'))]),
    ...(obj.spec?.nodeName ? [] : [fieldError.required(path.child('spec', 'nodeName'))]),
    ...(obj.spec?.source?.persistentVolumeName || obj.spec?.source?.inlineVolumeSpec
      ? []
      : [fieldError.required(path.child('spec', 'source'), 'must specify exactly one of inlineVolumeSpec and persistentVolumeName')]),
  ],
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<VolumeAttachment>(),
})
