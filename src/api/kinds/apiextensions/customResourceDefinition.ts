/** CustomResourceDefinition (L1). Upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition, pkg/apis/apiextensions (v1.36). */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { isRecognizedFormat } from '#api/schema/formats'
import { formatTime } from '#base/time'
import { nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { approvalFaults } from './approval.ts'
import { createRuleChecker } from './celRules.ts'
import { specFaults } from './definitionRules.ts'
import { itemsOf, schemasIn } from './schemaWalk.ts'
import { namesFaults } from './versionRules.ts'
import { fromV1beta1, toV1beta1 } from './writtenVersion.ts'

type Definition = CustomResourceDefinition | Frozen<CustomResourceDefinition>

const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

export const customResourceDefinition = defineKind<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  allowUnconditionalUpdate: false,
  convert: (obj, _from, to) => (to === 'v1beta1' ? toV1beta1(obj) : fromV1beta1(obj)),
  columns: [nameColumn, text('Created At', (obj) => obj.metadata.creationTimestamp ?? '')],
  defaults,
  defaultsReadSpec: true,
  prepareForCreate({ obj }) {
    dropStatus(obj, { acceptedNames: { kind: '', plural: '' }, storedVersions: storageVersions(obj) })
  },
  prepareForUpdate(input) {
    keepStatus(input)
    const { obj, old } = input
    const stored = old.status?.storedVersions ?? []
    // A version becomes stored as soon as it may be written: dropping it from the list is the migrator's right alone.
    obj.status = { ...obj.status, storedVersions: [...stored, ...storageVersions(obj).filter((name) => !stored.includes(name))] }
  },
  validate: ({ obj, path }) => [
    ...nameFaults(obj, path),
    ...specFaults(obj.spec, undefined, createRuleChecker(undefined)),
    ...statusFaults(obj, path),
    ...approvalFaults(obj.spec.group, obj.metadata.annotations),
    ...preserveFaults(obj, undefined, path),
  ],
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj.spec, old, createRuleChecker(old.spec)),
    ...immutableFaults(obj, old, path.child('spec')),
    ...statusFaults(obj, path),
    ...approvalFaults(obj.spec.group, obj.metadata.annotations, { annotations: old.metadata.annotations }),
    ...preserveFaults(obj, old, path),
  ],
  warnings: ({ obj }, old) => {
    const known = new Set(old ? warningsOf(old) : [])
    return warningsOf(obj).filter((warning) => !known.has(warning))
  },
  prepareForDelete(obj, nowMs) {
    // Instances go first; only then does the definition.
    const finalizers = obj.metadata.finalizers ?? []
    if (!finalizers.includes(cleanupFinalizer)) obj.metadata.finalizers = [...finalizers, cleanupFinalizer]
    const conditions = obj.status.conditions ?? []
    const condition = {
      type: 'Terminating',
      status: 'True',
      lastTransitionTime: formatTime(nowMs),
      reason: 'InstanceDeletionPending',
      message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    }
    obj.status.conditions = [...conditions.filter(({ type }) => type !== 'Terminating'), condition]
  },
  status: statusStrategy<CustomResourceDefinition>({
    validateUpdate: ({ obj, path }) => namesFaults(obj.status.acceptedNames ?? { plural: '', kind: '' }, path.child('status', 'acceptedNames')),
  }),
})

function defaults(obj: CustomResourceDefinition): void {
  obj.status ??= {}
  const { names } = obj.spec
  if (names) {
    names.singular ||= names.kind.toLowerCase()
    names.listKind ||= names.kind ? `${names.kind}List` : ''
  }
  obj.spec.conversion ??= { strategy: 'None' }
  const service = obj.spec.conversion.webhook?.clientConfig?.service
  if (service) service.port ??= 443
  if (!obj.status.storedVersions?.length) obj.status.storedVersions = storageVersions(obj)
}

function storageVersions({ spec }: Definition): string[] {
  return (spec.versions ?? [])
    .filter(({ storage }) => storage)
    .map(({ name }) => name)
    .slice(0, 1)
}

function nameFaults({ metadata, spec }: CustomResourceDefinition, path: FieldPath): FieldError[] {
  const wanted = `${spec.names.plural}.${spec.group}`
  const { name = '' } = metadata
  if (name === wanted || nameIsDnsSubdomain(name, false).length > 0) return []
  return [fieldError.invalid(path.child('metadata', 'name'), name, 'must be spec.names.plural+"."+spec.group')]
}

function immutableFaults(obj: CustomResourceDefinition, old: Frozen<CustomResourceDefinition>, path: FieldPath): FieldError[] {
  const whenEstablished = isConditionTrue(old.status?.conditions, 'Established')
    ? [
        ...validateImmutable(obj.spec.scope, old.spec.scope, path.child('scope')),
        ...validateImmutable(obj.spec.names?.kind, old.spec.names.kind, path.child('names', 'kind')),
      ]
    : []
  return [
    ...whenEstablished,
    ...validateImmutable(obj.spec.group, old.spec.group, path.child('group')),
    ...validateImmutable(obj.spec.names?.plural, old.spec.names.plural, path.child('names', 'plural')),
  ]
}

/** Every version that was ever stored must still be there. */
function statusFaults({ spec, status }: CustomResourceDefinition, root: FieldPath): FieldError[] {
  const path = root.child('status', 'storedVersions')
  const stored = status.storedVersions ?? []
  if (stored.length === 0) return [fieldError.invalid(path, stored, 'must have at least one stored version')]
  const names = (spec.versions ?? []).map(({ name }) => name)
  const missing = storageVersions({ spec } as CustomResourceDefinition).filter((name) => !stored.includes(name))
  return [
    ...missing.map((name) => fieldError.invalid(path, stored, `must have the storage version ${name}`)),
    ...stored.flatMap((name, index) => (names.includes(name) ? [] : [fieldError.invalid(path.index(index), name, removedVersion(name))])),
  ]
}

function removedVersion(name: string): string {
  const until = `and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`
  return `missing from spec.versions; ${name} was previously a storage version, ${until}`
}

function preserveFaults(obj: CustomResourceDefinition, old: Frozen<CustomResourceDefinition> | undefined, path: FieldPath): FieldError[] {
  if (!obj.spec.preserveUnknownFields || old?.spec.preserveUnknownFields) return []
  const detail = 'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
  return [fieldError.invalid(path.child('spec', 'preserveUnknownFields'), true, detail)]
}

/** Warnings about fields that are accepted but may not do what the author expects. */
function warningsOf({ spec }: Definition): string[] {
  const nodes = (spec.versions ?? []).flatMap(({ schema }) => schemasIn(schema?.openAPIV3Schema))
  const formats = nodes
    .filter(({ type, format }) => format && !isRecognizedFormat(type, format))
    .map(({ format }) => `unrecognized format ${JSON.stringify(format)}`)
  const sets = nodes.flatMap((node) => {
    const type = itemsOf(node)?.type
    if (node['x-kubernetes-list-type'] !== 'set' || (type !== 'object' && type !== 'array')) return []
    return [`x-kubernetes-list-type: set for items of type ${JSON.stringify(type)} is not supported by server-side apply or CEL validation rules`]
  })
  return [...new Set([...formats, ...[...new Set(sets)].sort()])]
}
