/**
 * StorageVersionMigration (L1): asks for every object of a resource to be rewritten; its status moves from running to one of two ends, and stays there.
 * Upstream: pkg/registry/storagemigration, pkg/apis/storagemigration/validation (v1.36).
 */
import type { StorageVersionMigration } from '#api/gen/types/storagemigration.v1beta1'
import { isConditionTrue } from '#api/machinery/conditions'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { validateImmutable } from '#api/machinery/objectMeta'
import { nameColumn, text } from '../columns.ts'
import { validateConditions } from '../conditionRules.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
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
  validate: ({ obj, path }) => (obj.spec?.resource?.resource ? [] : [fieldError.required(path.child('spec', 'resource', 'resource'), 'resource is required')]),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<StorageVersionMigration>({
    validateUpdate: ({ obj, old, path }: UpdateInput<StorageVersionMigration>) => statusFaults(obj, old, path.child('status')),
  }),
})

type Migration = StorageVersionMigration | Frozen<StorageVersionMigration>

const is = ({ status }: Migration, type: 'Running' | 'Succeeded' | 'Failed') => isConditionTrue(status?.conditions, type)

function statusFaults(obj: Migration, old: Migration, path: FieldPath): FieldError[] {
  const [conditions, ofConditions] = [obj.status?.conditions, path.child('conditions')]
  const [hasSucceeded, hasFailed, isRunning] = [is(obj, 'Succeeded'), is(obj, 'Failed'), is(obj, 'Running')]
  const faults = [
    [hasSucceeded && hasFailed, 'Both success and failed conditions cannot be true at the same time'],
    [hasSucceeded && isRunning, 'Running condition cannot be true when success condition is true'],
    [hasFailed && isRunning, 'Running condition cannot be true when failed condition is true'],
    [is(old, 'Succeeded') && !hasSucceeded, 'Success condition cannot be set to false once it is true'],
    [is(old, 'Failed') && !hasFailed, 'Failed condition cannot be set to false once it is true'],
  ] as const
  return [
    ...versionFaults(obj.status?.resourceVersion, old.status?.resourceVersion, path.child('resourceVersion')),
    ...validateConditions(conditions, ofConditions),
    ...faults.flatMap(([isFault, message]) => (isFault ? [fieldError.invalid(ofConditions, conditions, message)] : [])),
  ]
}

function versionFaults(version = '', before = '', path: FieldPath): FieldError[] {
  return [
    ...(/^\d*$/.test(version)
      ? []
      : [fieldError.invalid(path, version, `failed to parse resource version ${JSON.stringify(version)}: it must be a whole number`)]),
    ...(before === '' || version === before ? [] : [fieldError.invalid(path, version, 'cannot be updated')]),
  ]
}
