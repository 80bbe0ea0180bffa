/** What PersistentVolumes and claims share (L1): access modes, classes, and a size. Upstream: pkg/apis/core/validation, printers/internalversion (v1.36). */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Subdomain } from '#api/machinery/names'
import { canonicalQuantity, isQuantity, quantitySign } from '#api/machinery/quantity'
import { bareMap } from '#base/bareMap'
import { faults } from '../rules.ts'

const short: Readonly<Record<string, string>> = bareMap({ ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' })
/** What named the class before the field did. */
export const classAnnotation = 'volume.beta.kubernetes.io/storage-class'
export const classAnnotationWarning = 'deprecated since v1.8; use "storageClassName" attribute instead'

/** The class by field or by the annotation that preceded it. */
export function classOf(obj: Frozen<PersistentVolume | PersistentVolumeClaim>): string | undefined {
  return obj.metadata.annotations?.[classAnnotation] ?? obj.spec?.storageClassName
}

/** The Access Modes cell. */
export function modesText(list: readonly string[] | undefined): string {
  // Upstream prints the modes in this order, each once.
  return Object.keys(short)
    .filter((mode) => list?.includes(mode))
    .map((mode) => short[mode])
    .join(',')
}

/** @param missing message when there is none */
export function modeFaults(list: readonly string[] | undefined, missing: string, path: FieldPath): FieldError[] {
  const errors = list?.length ? [] : [fieldError.required(path, missing)]
  const supported = Object.keys(short).sort()
  for (const mode of list ?? []) if (!short[mode]) errors.push(fieldError.notSupported(path, mode, supported))
  const others = (list ?? []).some((mode) => short[mode] && mode !== 'ReadWriteOncePod')
  if (list?.includes('ReadWriteOncePod') && others) errors.push(fieldError.forbidden(path, 'may not use ReadWriteOncePod with other access modes'))
  return errors
}

/** A size that is there, and more than nothing. */
export function positiveFaults(value: string, path: FieldPath): FieldError[] {
  if (isQuantity(value) && quantitySign(value) > 0) return []
  return [fieldError.invalid(path, isQuantity(value) ? canonicalQuantity(value) : value, 'must be greater than zero')]
}

/** Names of the storage class and of the attributes class. */
export function classFaults(spec: { storageClassName?: string | undefined; volumeAttributesClassName?: string | undefined }, path: FieldPath): FieldError[] {
  return (['storageClassName', 'volumeAttributesClassName'] as const).flatMap((field) => {
    const value = spec[field]
    return value ? faults(path.child(field), value, isDns1123Subdomain(value)) : []
  })
}
