/**
 * CustomResourceDefinition (L1): what every other part reads of it: defaults, columns and the two halves. Compiling and judging its schema is
 * the work of whoever serves it. Upstream: apiextensions-apiserver/pkg/{apis/apiextensions/v1/defaults.go,registry/customresourcedefinition} (v1.36).
 */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1035Label, isDns1123Subdomain } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, oneOf, statusStrategy } from '../rules.ts'

export const customResourceDefinition = defineKind<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  columns: [nameColumn, text('Created At', (obj) => obj.metadata.creationTimestamp ?? '')],
  defaults(obj) {
    obj.spec ??= {} as CustomResourceDefinition['spec']
    obj.status ??= {}
    const { names } = obj.spec
    if (names) {
      names.singular ||= (names.kind ?? '').toLowerCase()
      names.listKind ||= names.kind ? `${names.kind}List` : ''
    }
    obj.spec.conversion ??= { strategy: 'None' }
    const client = obj.spec.conversion.webhook?.clientConfig?.service
    if (client) client.port ??= 443
  },
  prepareForCreate({ obj }) {
    dropStatus(obj, { acceptedNames: { kind: '', plural: '' }, conditions: [], storedVersions: [] })
    obj.status.storedVersions = (obj.spec.versions ?? []).filter((version) => version.storage).map((version) => version.name)
  },
  prepareForUpdate(input) {
    keepStatus(input)
    const { obj, old } = input
    const storage = (obj.spec.versions ?? []).filter((version) => version.storage).map((version) => version.name)
    const stored = old.status?.storedVersions ?? []
    // A version becomes stored as soon as it may be written: dropping it from the list is the migrator's right alone.
    obj.status = { ...obj.status, storedVersions: [...stored, ...storage.filter((name) => !stored.includes(name))] }
  },
  validate: ({ obj, path }) => specFaults(obj, path),
  validateUpdate: ({ obj, old, path }) => {
    const spec = path.child('spec')
    const established = old.status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True')
    return [
      ...specFaults(obj, path),
      ...(established
        ? [
            ...validateImmutable(obj.spec.scope, old.spec.scope, spec.child('scope')),
            ...validateImmutable(obj.spec.names.kind, old.spec.names.kind, spec.child('names', 'kind')),
          ]
        : []),
      ...validateImmutable(obj.spec.group, old.spec.group, spec.child('group')),
      ...validateImmutable(obj.spec.names.plural, old.spec.names.plural, spec.child('names', 'plural')),
    ]
  },
  status: statusStrategy<CustomResourceDefinition>(),
})

function specFaults({ spec, metadata }: CustomResourceDefinition, root: FieldPath): FieldError[] {
  const path = root.child('spec')
  const errors: FieldError[] = []
  const wanted = `${spec.names?.plural ?? ''}.${spec.group ?? ''}`
  if (metadata.name !== wanted) errors.push(fieldError.invalid(root.child('metadata', 'name'), metadata.name, 'must be spec.names.plural+"."+spec.group'))
  if (!spec.group) errors.push(fieldError.required(path.child('group')))
  else if (!spec.group.includes('.')) errors.push(fieldError.invalid(path.child('group'), spec.group, 'should be a domain with at least one dot'))
  else errors.push(...faults(path.child('group'), spec.group, isDns1123Subdomain(spec.group)))
  errors.push(...oneOf(spec.scope, ['Cluster', 'Namespaced'], path.child('scope')))
  const versions = path.child('versions')
  const seen = new Set<string>()
  for (const [i, version] of (spec.versions ?? []).entries()) {
    const at = versions.index(i)
    errors.push(...faults(at.child('name'), version.name, isDns1035Label(version.name ?? '')))
    if (seen.has(version.name)) errors.push(fieldError.invalid(at.child('name'), version.name, 'must be unique'))
    seen.add(version.name)
    if (!version.schema?.openAPIV3Schema) errors.push(fieldError.required(at.child('schema', 'openAPIV3Schema'), 'schemas are required'))
    else if (version.schema.openAPIV3Schema.type !== 'object')
      errors.push(fieldError.invalid(at.child('schema', 'openAPIV3Schema', 'type'), version.schema.openAPIV3Schema.type ?? '', 'must be object'))
  }
  const stored = (spec.versions ?? []).filter((version) => version.storage).length
  if (stored !== 1) errors.push(fieldError.invalid(versions, spec.versions, 'must have exactly one version marked as storage version'))
  for (const field of ['plural', 'kind'] as const) if (!spec.names?.[field]) errors.push(fieldError.required(path.child('names', field)))
  if (spec.names?.plural) errors.push(...faults(path.child('names', 'plural'), spec.names.plural, isDns1035Label(spec.names.plural)))
  if (spec.names?.kind) errors.push(...faults(path.child('names', 'kind'), spec.names.kind, isDns1035Label(spec.names.kind.toLowerCase())))
  if (spec.names?.kind && spec.names.kind === spec.names.listKind)
    errors.push(fieldError.invalid(path.child('names', 'listKind'), spec.names.listKind, 'kind and listKind may not be the same'))
  errors.push(...oneOf(spec.conversion?.strategy, ['None', 'Webhook'], path.child('conversion', 'strategy')))
  return errors
}
