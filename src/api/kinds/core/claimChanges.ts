/**
 * Validates updates of a claim and of its status (L1). The spec is fixed once created, except for the size of a bound claim, its attributes
 * class, and the binding itself. Upstream: pkg/apis/core/validation ValidatePersistentVolumeClaimUpdate, …StatusUpdate (v1.36).
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isQualifiedName } from '#api/machinery/names'
import { immutableMessage } from '#api/machinery/objectMeta'
import { compareQuantities, isQuantity, quantitySign, quantityValue } from '#api/machinery/quantity'
import { deepCopy } from '#base/frozen'
import { faults } from '../rules.ts'
import { mirrorDataSources } from './claimSources.ts'
import { validateQuantity } from './pod/validateResources.ts'
import { validateClaimSpec } from './validateClaim.ts'
import { classAnnotation } from './volumeModes.ts'

type Claim = PersistentVolumeClaim
type Spec = Claim['spec']

/** All the faults of a changed claim. */
export function validateClaimUpdate(obj: Claim, old: Frozen<Claim>, root: FieldPath): FieldError[] {
  const path = root.child('spec')
  // An API group that was let in by looser rules may stay.
  const errors = validateClaimSpec(obj.spec, path, { anyApiGroup: !!(old.spec.dataSource?.apiGroup || old.spec.dataSourceRef?.apiGroup) })
  const now = deepCopy<Spec>(obj.spec)
  const before = deepCopy<Spec>(old.spec)
  mirrorDataSources(before)
  // The binder names the volume.
  if (!before.volumeName) now.volumeName = before.volumeName
  errors.push(...classChange(obj, old, now, root))
  if (obj.status?.phase === 'Bound') {
    if (now.resources?.requests) now.resources.requests = { ...now.resources.requests, storage: before.resources?.requests?.storage ?? '0' }
    now.volumeAttributesClassName = before.volumeAttributesClassName
  }
  if (!semanticEqual(now, before)) {
    const only = 'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
    errors.push(fieldError.forbidden(path, `${only}\n`))
  }
  errors.push(...shrinkFaults(obj, old, path))
  if (!semanticEqual(obj.spec.volumeMode, old.spec.volumeMode))
    errors.push(fieldError.invalid(FieldPath.of('volumeMode'), obj.spec.volumeMode, immutableMessage))
  return [...errors, ...attributesClassFaults(obj, old, path.child('volumeAttributesClassName'))]
}

/** The class moves from the annotation that once named it to its field, or is filled in where there was none; nothing else. */
function classChange({ metadata, spec }: Claim, old: Frozen<Claim>, now: Spec, root: FieldPath): FieldError[] {
  const named = metadata.annotations?.[classAnnotation]
  const before = old.metadata.annotations?.[classAnnotation]
  const filledIn = old.spec.storageClassName === undefined && spec.storageClassName !== undefined
  if (filledIn && (before === undefined || spec.storageClassName === before)) delete now.storageClassName
  const moves = filledIn && spec.storageClassName === before && named === undefined
  if (moves || (named ?? '') === (before ?? '')) return []
  return [fieldError.invalid(root.child('metadata', 'annotations', classAnnotation), named ?? '', immutableMessage)]
}

/** After a failed expansion the request may shrink, but not below the present capacity. */
function shrinkFaults(obj: Claim, old: Frozen<Claim>, path: FieldPath): FieldError[] {
  const [size, before] = [obj.spec.resources?.requests?.storage, old.spec.resources?.requests?.storage]
  const capacity = old.status?.capacity?.storage ?? '0'
  if (size === undefined || before === undefined || !isQuantity(size) || compareQuantities(size, before) >= 0) return []
  const above = compareQuantities(size, capacity) > 0
  return above ? [] : [fieldError.forbidden(path.child('resources', 'requests', 'storage'), 'field can not be less than status.capacity')]
}

/** A class that was applied cannot be taken away; one that never was, can. */
function attributesClassFaults(obj: Claim, old: Frozen<Claim>, path: FieldPath): FieldError[] {
  const name = obj.spec.volumeAttributesClassName
  if (name === old.spec.volumeAttributesClassName || name || old.status?.currentVolumeAttributesClassName === undefined) return []
  const what = name === undefined ? 'nil' : 'empty string'
  return [fieldError.forbidden(path, `update to ${what} is forbidden when status.currentVolumeAttributesClassName is not nil`)]
}

const resizeStates = ['ControllerResizeInProgress', 'ControllerResizeInfeasible', 'NodeResizeInProgress', 'NodeResizeInfeasible', 'NodeResizePending']

/** The faults of a status. */
export function validateClaimStatus({ status }: Claim, path: FieldPath): FieldError[] {
  const [states, allocated] = [path.child('allocatedResourceStatuses'), path.child('allocatedResources')]
  return [
    ...Object.entries(status.capacity ?? {}).flatMap(([name, value]) => amountFaults(name, value, path.child('capacity'))),
    ...Object.entries(status.allocatedResourceStatuses ?? {}).flatMap(([name, state]) => [
      ...resourceFaults(name, states),
      // The key is reported, as upstream does.
      ...(resizeStates.includes(state) ? [] : [fieldError.notSupported(states, name, resizeStates)]),
    ]),
    ...Object.entries(status.allocatedResources ?? {}).flatMap(([name, value]) => {
      const errors = resourceFaults(name, allocated)
      return errors.length > 0 ? errors : amountFaults(name, value, allocated)
    }),
  ]
}

function amountFaults(name: string, value: string, path: FieldPath): FieldError[] {
  const at = path.key(name)
  if (!isQuantity(value) || quantitySign(value) >= 0) return validateQuantity(name, value, at)
  return [fieldError.invalid(at, quantityValue(value), 'must be a valid resource quantity')]
}

/** A resource of a claim: storage, or one with a domain prefix. */
function resourceFaults(name: string, path: FieldPath): FieldError[] {
  const errors = faults(path, name, isQualifiedName(name))
  const native = !name.includes('/') || name.includes('kubernetes.io/')
  return errors.length === 0 && native && name !== 'storage' ? [fieldError.notSupported(path, name, ['storage'])] : errors
}
