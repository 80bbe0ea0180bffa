/**
 * PersistentVolumeClaim (L1): fixed once made, but for its size when bound, its attributes class, and the binding itself.
 * Upstream: pkg/registry/core/persistentvolumeclaim, pkg/apis/core/validation ValidatePersistentVolumeClaim* (v1.36).
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities, isQuantity } from '#api/machinery/quantity'
import { deepCopy } from '#base/frozen'
import { ageColumn, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { validateQuantity } from './pod/validateResources.ts'
import { claimWarnings, validateClaimSpec } from './validateClaim.ts'
import { classOf, modesText } from './volumeModes.ts'

type Spec = PersistentVolumeClaim['spec']

export const persistentVolumeClaim = defineKind<PersistentVolumeClaim>({
  group: '',
  kind: 'PersistentVolumeClaim',
  generation: false,
  columns: [
    nameColumn,
    text('Status', (obj) => (obj.metadata.deletionTimestamp ? 'Terminating' : (obj.status?.phase ?? ''))),
    text('Volume', (obj) => obj.spec?.volumeName ?? ''),
    text('Capacity', (obj) => (obj.spec?.volumeName ? (obj.status?.capacity?.storage ?? '') : '')),
    text('Access Modes', (obj) => (obj.spec?.volumeName ? modesText(obj.status?.accessModes) : '')),
    text('StorageClass', (obj) => classOf(obj) ?? ''),
    text('VolumeAttributesClass', (obj) => obj.spec?.volumeAttributesClassName ?? unset),
    ageColumn,
    text('VolumeMode', (obj) => obj.spec?.volumeMode ?? unset, 1),
  ],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.status.phase ||= 'Pending'
    obj.spec.volumeMode ??= 'Filesystem'
    // The data source has two spellings; whoever sets one sets both, where both can say it.
    const { dataSource, dataSourceRef } = obj.spec
    if (dataSource && !dataSourceRef) obj.spec.dataSourceRef = { ...dataSource }
    else if (dataSourceRef && !dataSource && !dataSourceRef.namespace && (!dataSourceRef.apiGroup || dataSourceRef.apiGroup === 'snapshot.storage.k8s.io')) {
      const { namespace: _, ...local } = dataSourceRef
      obj.spec.dataSource = local
    }
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { phase: 'Pending' }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => validateClaimSpec(obj.spec, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => claimChange(obj, old, path.child('spec')),
  warnings: ({ obj, path }) => claimWarnings(obj.spec, path.child('spec')),
  status: statusStrategy<PersistentVolumeClaim>({ validateUpdate: ({ obj, path }) => statusFaults(obj, path.child('status')) }),
})

/** What an update may not touch. */
function claimChange(obj: PersistentVolumeClaim, old: Frozen<PersistentVolumeClaim>, path: FieldPath): FieldError[] {
  const errors = validateClaimSpec(obj.spec, path)
  const copy = deepCopy<Spec>(obj.spec)
  const before = deepCopy<Spec>(old.spec)
  // The binder names the volume, and the default class may be filled in afterwards.
  if (!before.volumeName) copy.volumeName = before.volumeName
  if (before.storageClassName === undefined) copy.storageClassName = before.storageClassName
  const attributes = copy.volumeAttributesClassName
  copy.volumeAttributesClassName = before.volumeAttributesClassName
  const size = copy.resources?.requests?.storage
  const bound = old.status?.phase === 'Bound'
  if (bound && copy.resources?.requests) copy.resources.requests = before.resources?.requests
  if (!semanticEqual(copy, before)) {
    const only = 'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
    errors.push(fieldError.forbidden(path, `${only}\n`))
  }
  if (!semanticEqual(obj.spec.volumeMode, old.spec.volumeMode))
    errors.push(fieldError.invalid(FieldPath.of('volumeMode'), obj.spec.volumeMode, 'field is immutable'))
  if (before.volumeAttributesClassName !== undefined && attributes === undefined)
    errors.push(fieldError.forbidden(path.child('volumeAttributesClassName'), 'update from non-nil value to nil is forbidden'))
  return bound ? [...errors, ...shrinkFaults(size, old, path)] : errors
}

/** An expansion that failed may be taken back, but not below what there is. */
function shrinkFaults(size: string | undefined, old: Frozen<PersistentVolumeClaim>, path: FieldPath): FieldError[] {
  const [before, capacity] = [old.spec.resources?.requests?.storage, old.status?.capacity?.storage]
  if (size === undefined || before === undefined || !isQuantity(size) || compareQuantities(size, before) >= 0) return []
  const above = capacity !== undefined && compareQuantities(size, capacity) > 0
  return above ? [] : [fieldError.forbidden(path.child('resources', 'requests', 'storage'), 'field can not be less than status.capacity')]
}

const resizeStates = ['ControllerResizeInProgress', 'ControllerResizeInfeasible', 'NodeResizePending', 'NodeResizeInProgress', 'NodeResizeInfeasible']

function statusFaults({ status }: PersistentVolumeClaim, path: FieldPath): FieldError[] {
  const amounts = (list: 'capacity' | 'allocatedResources') =>
    Object.entries(status[list] ?? {}).flatMap(([name, value]) => validateQuantity(name, value, path.child(list).key(name)))
  const states = Object.entries(status.allocatedResourceStatuses ?? {}).flatMap(([name, state]) =>
    resizeStates.includes(state) ? [] : [fieldError.notSupported(path.child('allocatedResourceStatus').key(name), state, resizeStates)],
  )
  return [...amounts('capacity'), ...states, ...amounts('allocatedResources')]
}
