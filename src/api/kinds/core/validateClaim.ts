/** Validation of what asks for a volume: claims, and the templates of claims in pods (L1). Upstream: pkg/apis/core/validation ValidatePersistentVolumeClaim* (v1.36). */
import type { PersistentVolumeClaim, PersistentVolumeClaimTemplate } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector, validateLabels } from '#api/machinery/labelSelector'
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'
import { validateAnnotations } from '#api/machinery/objectMeta'
import { isQuantity } from '#api/machinery/quantity'
import { faults } from '../rules.ts'
import { fractionWarnings } from './fractions.ts'
import { validateQuantity } from './pod/validateResources.ts'
import { classAnnotation, classAnnotationWarning, classFaults, modeFaults, positiveFaults } from './volumeModes.ts'

type Spec = PersistentVolumeClaim['spec']

/** The template of an ephemeral volume. Only labels and annotations of its metadata are copied to the claim. */
export function validateClaimTemplate({ metadata = {}, spec }: PersistentVolumeClaimTemplate, path: FieldPath): FieldError[] {
  const at = path.child('metadata')
  const { labels, annotations, ...others } = metadata
  const set = Object.entries(others).filter(([, value]) => value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0))
  return [
    ...validateAnnotations(annotations, at.child('annotations')),
    ...validateLabels(labels, at.child('labels')),
    ...set.map(([field]) => fieldError.forbidden(at.child(field), 'cannot be set for an ephemeral volume')),
    ...validateClaimSpec(spec ?? {}, path.child('spec')),
  ]
}

/** What a claim may hold that a new one may not. */
export interface ClaimAllowances {
  readonly anyApiGroup?: boolean
}

/** A claim's spec, in a claim and in a pod's template of one. */
export function validateClaimSpec(spec: Spec, path: FieldPath, { anyApiGroup = false }: ClaimAllowances = {}): FieldError[] {
  const modes = modeFaults(spec.accessModes, 'at least 1 access mode is required', path.child('accessModes'))
  const selector = validateLabelSelector(spec.selector, path.child('selector'))
  // The error for missing access modes precedes the selector's errors, those for wrong modes follow them.
  const errors = spec.accessModes?.length ? [...selector, ...modes] : [...modes, ...selector]
  const size = spec.resources?.requests?.storage
  const at = path.child('resources').key('storage')
  if (size === undefined) errors.push(fieldError.required(at))
  else if (!isQuantity(size)) errors.push(...validateQuantity('storage', size, at))
  else errors.push(...positiveFaults(size, at))
  const { storageClassName, volumeAttributesClassName, ...rest } = spec
  errors.push(...classFaults({ storageClassName }, path))
  if (rest.volumeMode !== undefined && !['Block', 'Filesystem'].includes(rest.volumeMode))
    errors.push(fieldError.notSupported(path.child('volumeMode'), rest.volumeMode, ['Block', 'Filesystem']))
  errors.push(...sourceFaults(spec, anyApiGroup, path))
  return [...errors, ...classFaults({ volumeAttributesClassName }, path)]
}

function sourceFaults(spec: Spec, anyApiGroup: boolean, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const field of ['dataSource', 'dataSourceRef'] as const) {
    const source = spec[field]
    if (!source) continue
    const at = path.child(field)
    const { name, kind, apiGroup = '' } = source
    if (!name) errors.push(fieldError.required(at.child('name')))
    if (!kind) errors.push(fieldError.required(at.child('kind')))
    if (!apiGroup && kind !== 'PersistentVolumeClaim')
      errors.push(fieldError.invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
    if (apiGroup && !anyApiGroup) errors.push(...faults(at.child('apiGroup'), apiGroup, isDns1123Subdomain(apiGroup)))
  }
  const namespace = spec.dataSourceRef?.namespace
  if (namespace) {
    errors.push(...faults(path.child('dataSourceRef', 'namespace'), namespace, isDns1123Label(namespace)))
    if (spec.dataSource) {
      const must = 'may not be specified when dataSourceRef.namespace is specified'
      errors.push(fieldError.invalid(path, path.child('dataSource').toString(), must))
    }
    return errors
  }
  const { dataSource, dataSourceRef } = spec
  if (dataSource && dataSourceRef && !semanticEqual(dataSource, dataSourceRef))
    errors.push(fieldError.invalid(path, path.child('dataSource').toString(), 'must match dataSourceRef'))
  return errors
}

/** About what a claim uses that is old, and about sizes of parts of bytes. */
export function volumeClaimWarnings({ metadata, spec }: PersistentVolumeClaim, path: FieldPath): string[] {
  const old = metadata.annotations?.[classAnnotation] !== undefined
  const at = path.child('metadata', 'annotations').key(classAnnotation)
  return [...(old ? [`${at}: ${classAnnotationWarning}`] : []), ...claimWarnings(spec, path.child('spec'))]
}

/** About sizes of parts of bytes, in a claim and in a pod's template of one. */
export function claimWarnings({ resources }: Spec, path: FieldPath): string[] {
  return (['requests', 'limits'] as const).flatMap((list) => fractionWarnings(resources?.[list], ['storage'], path.child('resources', list)))
}
