/** VolumeAttributesClass (L1). Upstream: pkg/registry/storage/volumeattributesclass, pkg/apis/storage/validation (v1.36). */
import type { VolumeAttributesClass } from '#api/gen/types/storage.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { parametersFaults, provisionerFaults } from './classRules.ts'

const defaultAnnotation = 'volumeattributesclass.alpha.kubernetes.io/is-default-class'

export const volumeAttributesClass = defineKind<VolumeAttributesClass>({
  group: 'storage.k8s.io',
  kind: 'VolumeAttributesClass',
  generation: false,
  columns: [
    { ...nameColumn, value: ({ metadata }) => `${metadata.name ?? ''}${metadata.annotations?.[defaultAnnotation] === 'true' ? ' (default)' : ''}` },
    text('DriverName', (obj) => obj.driverName ?? ''),
    ageColumn,
  ],
  validate: ({ obj, path }) => classFaults(obj, path),
  validateUpdate: ({ obj, old, path }) => [
    ...(['driverName', 'parameters'] as const).flatMap((field) =>
      semanticEqual(obj[field], old[field]) ? [] : [fieldError.forbidden(path.child(field), `updates to ${field} are forbidden.`)],
    ),
    ...classFaults(obj, path),
  ],
})

function classFaults(obj: VolumeAttributesClass, path: FieldPath): FieldError[] {
  const errors = [...provisionerFaults(obj.driverName, path.child('driverName')), ...parametersFaults(obj.parameters, path.child('parameters'))]
  if (Object.keys(obj.parameters ?? {}).length === 0) errors.push(fieldError.required(path.child('parameters'), 'must contain at least one key/value pair'))
  return errors
}
