/** StorageClass and VolumeAttributesClass (L1). Upstream: pkg/registry/storage, pkg/apis/storage/{v1/defaults,validation} (v1.36). */
import type { StorageClass, VolumeAttributesClass } from '#api/gen/types/storage.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isQualifiedName } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, boolean, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'

const group = 'storage.k8s.io'
const defaultAnnotations = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

export const storageClass = defineKind<StorageClass>({
  group,
  kind: 'StorageClass',
  generation: false,
  columns: [
    { ...nameColumn, value: (obj) => `${obj.metadata.name ?? ''}${isDefaultStorageClass(obj) ? ' (default)' : ''}` },
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
  validateUpdate({ obj, old, path }) {
    const errors = classFaults(obj, path)
    const why = 'updates to %s are forbidden.'
    for (const field of ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'] as const)
      if (!semanticEqual(obj[field], old[field])) errors.push(fieldError.forbidden(path.child(field), why.replace('%s', field)))
    return errors
  },
})

export const volumeAttributesClass = defineKind<VolumeAttributesClass>({
  group,
  kind: 'VolumeAttributesClass',
  generation: false,
  columns: [nameColumn, text('DriverName', (obj) => obj.driverName ?? ''), ageColumn],
  validate: ({ obj, path }) => (obj.driverName ? [] : [fieldError.required(path.child('driverName'))]),
  validateUpdate: ({ obj, old, path }) => [
    ...validateImmutable(obj.driverName, old.driverName, path.child('driverName')),
    ...(semanticEqual(obj.parameters, old.parameters) ? [] : [fieldError.forbidden(path.child('parameters'), 'updates to parameters are forbidden.')]),
  ],
})

/** What claims without a class get. */
function isDefaultStorageClass(obj: Frozen<StorageClass>): boolean {
  return defaultAnnotations.some((name) => obj.metadata.annotations?.[name] === 'true')
}

function classFaults(obj: StorageClass, path: FieldPath): FieldError[] {
  const errors = obj.provisioner
    ? faults(path.child('provisioner'), obj.provisioner, isQualifiedName(obj.provisioner.toLowerCase()))
    : [fieldError.required(path.child('provisioner'))]
  for (const key of Object.keys(obj.parameters ?? {})) if (key === '') errors.push(fieldError.invalid(path.child('parameters'), key, 'field can not be empty.'))
  if (obj.reclaimPolicy) errors.push(...oneOf(obj.reclaimPolicy, ['Delete', 'Retain'], path.child('reclaimPolicy')))
  errors.push(...oneOf(obj.volumeBindingMode, ['Immediate', 'WaitForFirstConsumer'], path.child('volumeBindingMode')))
  return errors
}
