/** ServiceAccount (L1). Upstream: pkg/registry/core/serviceaccount (v1.36). */
import type { ServiceAccount } from '#api/gen/types/core.v1'
import { ageColumn, integer, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { keepFields } from '../rules.ts'

export const serviceAccount = defineKind<ServiceAccount>({
  group: '',
  kind: 'ServiceAccount',
  generation: false,
  columns: [nameColumn, integer('Secrets', (obj) => obj.secrets?.length), ageColumn],
  prepareForCreate({ obj }) {
    // Secrets are written by controllers after creation; a client's list is kept as upstream keeps it.
    if (obj.secrets?.length === 0) keepFields(obj, {}, ['secrets'])
  },
})
