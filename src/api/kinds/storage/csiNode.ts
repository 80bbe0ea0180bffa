/** CSINode (L1). Upstream: pkg/registry/storage/csinode, pkg/apis/storage/validation (v1.36). */
import type { CSINode, CSINodeDriver } from '#api/gen/types/storage.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isQualifiedName } from '#api/machinery/names'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { csiDriverNameFaults } from './classRules.ts'

const maxNodeIdLength = 256

export const csiNode = defineKind<CSINode>({
  group: 'storage.k8s.io',
  kind: 'CSINode',
  generation: false,
  allowUnconditionalUpdate: false,
  columns: [nameColumn, integer('Drivers', (obj) => obj.spec?.drivers?.length), ageColumn],
  validate: ({ obj, path }) => driversFaults(obj, path.child('spec', 'drivers')),
  validateUpdate: ({ obj, old, path }) => [
    ...driversFaults(obj, path.child('spec', 'drivers')),
    // A driver that stays keeps everything but the number of volumes it can attach.
    ...(old.spec?.drivers ?? []).flatMap(({ allocatable: _, ...before }) =>
      (obj.spec?.drivers ?? [])
        .filter((driver) => driver.name === before.name)
        .flatMap(({ allocatable: __, ...after }) => validateImmutable(after, before, path.child('spec', 'drivers'))),
    ),
  ],
})

function driversFaults({ spec }: CSINode, path: FieldPath): FieldError[] {
  const names = new Set<string>()
  return (spec?.drivers ?? []).flatMap((driver, i) => {
    const at = path.index(i)
    const errors = driverFaults(driver, at)
    if (names.has(driver.name)) errors.push(fieldError.duplicate(at.child('name'), driver.name))
    names.add(driver.name)
    return [...errors, ...topologyKeyFaults(driver.topologyKeys ?? [], at)]
  })
}

function driverFaults({ name, nodeID, allocatable }: CSINodeDriver, path: FieldPath): FieldError[] {
  const errors = csiDriverNameFaults(name, path.child('name'))
  if (!nodeID) errors.push(fieldError.required(path.child('nodeID')))
  else if (nodeID.length > maxNodeIdLength) errors.push(fieldError.invalid(path.child('nodeID'), nodeID, `must be ${maxNodeIdLength} characters or less`))
  return [...errors, ...validateNonNegative(allocatable?.count, path.child('allocatable', 'count'))]
}

function topologyKeyFaults(keys: readonly string[], path: FieldPath): FieldError[] {
  const repeated = repeatedAt(keys)
  return keys.flatMap((key, i) => [
    ...(key ? [] : [fieldError.required(path)]),
    ...(repeated.has(i) ? [fieldError.duplicate(path, key)] : []),
    ...faults(path, key, isQualifiedName(key)),
  ])
}
