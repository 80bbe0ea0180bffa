/** ServiceAccount (L1): keeps only the names of the secrets that it lists. Upstream: pkg/registry/core/serviceaccount (v1.36). */
import type { ServiceAccount } from '#api/gen/types/core.v1'
import { ageColumn, integer, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'

const mountableAnnotation = 'kubernetes.io/enforce-mountable-secrets'

export const serviceAccount = defineKind<ServiceAccount>({
  group: '',
  kind: 'ServiceAccount',
  generation: false,
  columns: [nameColumn, integer('Secrets', (obj) => obj.secrets?.length), ageColumn],
  prepareForCreate: ({ obj }) => keepNames(obj),
  prepareForUpdate: ({ obj }) => keepNames(obj),
  warnings({ obj, path }, old) {
    if (old?.metadata.annotations?.[mountableAnnotation] !== undefined || obj.metadata.annotations?.[mountableAnnotation] === undefined) return []
    const at = path.child('metadata', 'annotations').key(mountableAnnotation)
    return [`${at}: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`]
  },
})

function keepNames(obj: ServiceAccount): void {
  if (obj.secrets?.length === 0) delete obj.secrets
  else if (obj.secrets) obj.secrets = obj.secrets.map(({ name }) => (name === undefined ? {} : { name }))
}
