/** ConfigMap (L1): keys become file names, all data together at most 1 MiB, fixed once `immutable` is true. Upstream: pkg/apis/core/validation (v1.36). */
import type { ConfigMap } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isConfigMapKey } from '#api/machinery/names'
import { immutableMessage } from '#api/machinery/objectMeta'
import { ownValue } from '#base/bareMap'
import { ageColumn, integer, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { base64Length, immutableWhenSet, maxDataBytes, utf8Length } from './data.ts'

export const configMap = defineKind<ConfigMap>({
  group: '',
  kind: 'ConfigMap',
  generation: false,
  columns: [nameColumn, integer('Data', (obj) => count(obj.data) + count(obj.binaryData)), ageColumn],
  validate: ({ obj, path }) => dataFaults(obj, path),
  validateUpdate: ({ obj, old, path }) => [
    ...(old.immutable
      ? [
          ...(obj.immutable ? [] : [fieldError.forbidden(path.child('immutable'), `${immutableMessage} when \`immutable\` is set`)]),
          ...immutableWhenSet(obj.data, old.data, path.child('data')),
          ...immutableWhenSet(obj.binaryData, old.binaryData, path.child('binaryData')),
        ]
      : []),
    ...dataFaults(obj, path),
  ],
})

function count(map: Readonly<Record<string, string>> | undefined): number {
  return map ? Object.keys(map).length : 0
}

function dataFaults(obj: ConfigMap, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  let size = 0
  const data = path.child('data')
  for (const key in obj.data) {
    errors.push(...faults(data.key(key), key, isConfigMapKey(key)))
    if (obj.binaryData && Object.hasOwn(obj.binaryData, key)) errors.push(fieldError.invalid(data.key(key), key, 'duplicate of key present in binaryData'))
    size += utf8Length(ownValue(obj.data, key) as string)
  }
  for (const [key, value] of Object.entries(obj.binaryData ?? {})) {
    errors.push(...faults(path.child('binaryData').key(key), key, isConfigMapKey(key)))
    size += base64Length(value)
  }
  // The whole has no path: upstream's is one empty step.
  return size > maxDataBytes ? [...errors, fieldError.tooLong(path.key(''), maxDataBytes)] : errors
}
