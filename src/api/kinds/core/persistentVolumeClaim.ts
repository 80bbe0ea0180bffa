/** PersistentVolumeClaim (L1). Upstream: pkg/registry/core/persistentvolumeclaim, pkg/apis/core/validation (v1.36). */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { validateClaimStatus, validateClaimUpdate } from './claimChanges.ts'
import { settleDataSources } from './claimSources.ts'
import { validateClaimSpec, volumeClaimWarnings } from './validateClaim.ts'
import { classOf, modesText } from './volumeModes.ts'

export const persistentVolumeClaim = defineKind<PersistentVolumeClaim>({
  group: '',
  kind: 'PersistentVolumeClaim',
  generation: false,
  columns: [
    nameColumn,
    text('Status', (obj) => (obj.metadata.deletionTimestamp ? 'Terminating' : (obj.status?.phase ?? ''))),
    text('Volume', (obj) => obj.spec?.volumeName ?? ''),
    text('Capacity', (obj) => (obj.spec?.volumeName ? (obj.status?.capacity?.storage ?? '') : '')),
    text('Access Modes', (obj) => (obj.spec?.volumeName ? modesText(obj.status?.accessModes) : '')),
    text('StorageClass', (obj) => classOf(obj) ?? ''),
    text('VolumeAttributesClass', (obj) => obj.spec?.volumeAttributesClassName ?? unset),
    ageColumn,
    text('VolumeMode', (obj) => obj.spec?.volumeMode ?? unset, 1),
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.status.phase ||= 'Pending'
    obj.spec.volumeMode ??= 'Filesystem'
  },
  prepareForCreate({ obj }) {
    dropStatus(obj, { phase: 'Pending' })
    settleDataSources(obj.spec)
  },
  prepareForUpdate(input) {
    keepStatus(input)
    settleDataSources(input.obj.spec, input.old.spec)
  },
  validate: ({ obj, path }) => validateClaimSpec(obj.spec, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => validateClaimUpdate(obj, old, path),
  warnings: ({ obj, path }) => volumeClaimWarnings(obj, path),
  status: statusStrategy<PersistentVolumeClaim>({ validateUpdate: ({ obj, path }) => validateClaimStatus(obj, path.child('status')) }),
})
