/** StorageClass (L1). Upstream: pkg/registry/storage/storageclass, pkg/apis/storage/{v1/defaults,validation} (v1.36). */
import type { TopologySelectorTerm } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelName } from '#api/machinery/labelSelector'
import { validateImmutable } from '#api/machinery/objectMeta'
import { emptyMap, ownValue } from '#base/bareMap'
import { ageColumn, boolean, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { nodeLabelWarnings } from '../nodeLabelWarnings.ts'
import { oneOf } from '../rules.ts'
import { parametersFaults, provisionerFaults } from './classRules.ts'

const defaultAnnotations = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

export const storageClass = defineKind<StorageClass>({
  group: 'storage.k8s.io',
  kind: 'StorageClass',
  generation: false,
  columns: [
    {
      ...nameColumn,
      value: ({ metadata }) =>
        `${metadata.name ?? ''}${defaultAnnotations.some((name) => ownValue(metadata.annotations, name) === 'true') ? ' (default)' : ''}`,
    },
    text('Provisioner', (obj) => obj.provisioner ?? ''),
    text('ReclaimPolicy', (obj) => obj.reclaimPolicy ?? 'Delete'),
    text('VolumeBindingMode', (obj) => obj.volumeBindingMode ?? 'Immediate'),
    boolean('AllowVolumeExpansion', (obj) => obj.allowVolumeExpansion ?? false),
    ageColumn,
  ],
  defaults(obj) {
    obj.reclaimPolicy ??= 'Delete'
    obj.volumeBindingMode ??= 'Immediate'
  },
  validate: ({ obj, path }) => classFaults(obj, path),
  warnings: ({ obj, path }) =>
    (obj.allowedTopologies ?? []).flatMap(({ matchLabelExpressions }, i) => {
      const at = path.child('allowedTopologies').index(i).child('matchLabelExpressions')
      return (matchLabelExpressions ?? []).flatMap(({ key }, j) => nodeLabelWarnings(key, at.index(j).child('key'), false))
    }),
  validateUpdate: ({ obj, old, path }) => [
    ...classFaults(obj, path),
    ...(['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'] as const).flatMap((field) =>
      validateImmutable(obj[field], old[field], path.child(field)),
    ),
  ],
})

function classFaults(obj: StorageClass, path: FieldPath): FieldError[] {
  return [
    ...provisionerFaults(obj.provisioner, path.child('provisioner')),
    ...parametersFaults(obj.parameters, path.child('parameters')),
    ...(obj.reclaimPolicy ? oneOf(obj.reclaimPolicy, ['Delete', 'Retain'], path.child('reclaimPolicy')) : []),
    ...oneOf(obj.volumeBindingMode, ['Immediate', 'WaitForFirstConsumer'], path.child('volumeBindingMode')),
    ...topologiesFaults(obj.allowedTopologies ?? [], path.child('allowedTopologies')),
  ]
}

function topologiesFaults(terms: readonly TopologySelectorTerm[], path: FieldPath): FieldError[] {
  const before: Record<string, string[]>[] = []
  return terms.flatMap((term, i) => {
    const at = path.index(i).child('matchLabelExpressions')
    const { meaning, errors } = termFaults(term, at)
    if (before.some((one) => semanticEqual(one, meaning))) errors.push(fieldError.duplicate(at, ''))
    before.push(meaning)
    return errors
  })
}

function termFaults({ matchLabelExpressions = [] }: TopologySelectorTerm, path: FieldPath) {
  const meaning: Record<string, string[]> = emptyMap()
  const errors: FieldError[] = []
  for (const [i, { key, values = [] }] of matchLabelExpressions.entries()) {
    const at = path.index(i)
    if (values.length === 0) errors.push(fieldError.required(at.child('values')))
    for (const j of repeatedAt(values)) errors.push(fieldError.duplicate(at.child('values').index(j), values[j]))
    errors.push(...validateLabelName(key, at.child('key')))
    if (Object.hasOwn(meaning, key)) errors.push(fieldError.duplicate(at.child('key'), key))
    meaning[key] = [...new Set(values)].sort()
  }
  return { meaning, errors }
}
