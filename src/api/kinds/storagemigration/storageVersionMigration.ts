/** StorageVersionMigration (L1). Upstream: pkg/registry/storagemigration (v1.36). */
import type { StorageVersionMigration } from '#api/gen/types/storagemigration.v1beta1'
import { validateImmutable } from '#api/machinery/objectMeta'
import { nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

export const storageVersionMigration = defineKind<StorageVersionMigration>({
  group: 'storagemigration.k8s.io',
  kind: 'StorageVersionMigration',
  columns: [
    nameColumn,
    text('Resource', ({ spec }) => (spec?.resource?.group ? `${spec.resource.resource}.${spec.resource.group}` : (spec?.resource?.resource ?? ''))),
  ],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<StorageVersionMigration>(),
})
