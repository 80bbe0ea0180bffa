/**
 * Validation of metadata on create and update (L1). Runs for every kind, before the kind's own rules.
 * Upstream: apimachinery/pkg/api/validation/objectmeta.go (v1.36).
 */
import { semanticEqual } from './equality.ts'
import { type FieldError, type FieldPath, fieldError } from './fieldPath.ts'
import { type LabelMap, validateLabels } from './labelSelector.ts'
import { type Frozen, type ObjectMeta, type OwnerReference, parseGroupVersion } from './meta.ts'
import { isQualifiedName, type NameCheck, nameIsDnsLabel } from './names.ts'

type Meta = ObjectMeta | Frozen<ObjectMeta>

export const annotationsLimitBytes = 256 * 1024
const orphan = 'orphan'
const foreground = 'foregroundDeletion'

export const immutableMessage = 'field is immutable'
export const negativeMessage = 'must be greater than or equal to 0'

/** The faults of new metadata; the name has been generated already. */
export function validateObjectMeta(meta: Meta, namespaced: boolean, checkName: NameCheck, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (meta.generateName) {
    const at = path.child('generateName')
    errors.push(...checkName(meta.generateName, true).map((fault) => fieldError.invalid(at, meta.generateName, fault)))
  }
  if (!meta.name) errors.push(fieldError.required(path.child('name'), 'name or generateName is required'))
  else errors.push(...checkName(meta.name, false).map((fault) => fieldError.invalid(path.child('name'), meta.name, fault)))
  const at = path.child('namespace')
  if (!namespaced) {
    if (meta.namespace) errors.push(fieldError.forbidden(at, 'not allowed on this type'))
  } else if (!meta.namespace) errors.push(fieldError.required(at))
  else errors.push(...nameIsDnsLabel(meta.namespace, false).map((fault) => fieldError.invalid(at, meta.namespace, fault)))
  errors.push(...validateNonNegative(meta.generation, path.child('generation')))
  errors.push(...validateShared(meta, path))
  const finalizers = path.child('finalizers')
  for (const name of meta.finalizers ?? []) errors.push(...validateFinalizerName(name, finalizers))
  if (meta.finalizers?.includes(orphan) && meta.finalizers.includes(foreground)) {
    errors.push(fieldError.invalid(finalizers, meta.finalizers, `finalizer ${orphan} and ${foreground} cannot be both set`))
  }
  return errors
}

const immutableFields = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const

/** The faults of changed metadata. */
export function validateObjectMetaUpdate(meta: Meta, old: Frozen<ObjectMeta>, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (old.deletionTimestamp) {
    const added = (meta.finalizers ?? []).filter((name) => !old.finalizers?.includes(name)).sort()
    if (added.length > 0) {
      const list = added.map((name) => JSON.stringify(name)).join(', ')
      const detail = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`
      errors.push(fieldError.forbidden(path.child('finalizers'), detail))
    }
  }
  if (!meta.resourceVersion) errors.push(fieldError.invalid(path.child('resourceVersion'), meta.resourceVersion ?? '', 'must be specified for an update'))
  errors.push(...validateNonNegative(meta.generation, path.child('generation')))
  if ((meta.generation ?? 0) < (old.generation ?? 0)) errors.push(fieldError.invalid(path.child('generation'), meta.generation ?? 0, 'must not be decremented'))
  for (const field of immutableFields) if (meta[field] !== old[field]) errors.push(...validateImmutable(meta[field], old[field], path.child(field)))
  errors.push(...validateShared(meta, path))
  return errors
}

/** One error when the two differ. */
export function validateImmutable(value: unknown, old: unknown, path: FieldPath): FieldError[] {
  return semanticEqual(value, old) ? [] : [fieldError.invalid(path, value, immutableMessage)]
}

export function validateNonNegative(value: number | undefined, path: FieldPath): FieldError[] {
  return value !== undefined && value < 0 ? [fieldError.invalid(path, value, negativeMessage)] : []
}

/** The faults of a map of annotations: keys, and the size of all of it. */
export function validateAnnotations(annotations: LabelMap | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const key in annotations) errors.push(...isQualifiedName(key.toLowerCase()).map((fault) => fieldError.invalid(path, key, fault)))
  if (!annotationsFit(annotations)) errors.push(fieldError.tooLong(path, annotationsLimitBytes))
  return errors
}

/** Whether keys and values together stay within the limit. */
export function annotationsFit(annotations: LabelMap | undefined): boolean {
  let size = 0
  for (const key in annotations) size += utf8Length(key) + utf8Length(annotations[key] as string)
  return size <= annotationsLimitBytes
}

export function validateFinalizerName(name: string, path: FieldPath): FieldError[] {
  return isQualifiedName(name).map((fault) => fieldError.invalid(path, name, fault))
}

/** What both create and update check. */
function validateShared(meta: Meta, path: FieldPath): FieldError[] {
  return [
    ...validateLabels(meta.labels, path.child('labels')),
    ...validateAnnotations(meta.annotations, path.child('annotations')),
    ...validateOwnerReferences(meta.ownerReferences, path.child('ownerReferences')),
    ...(meta.managedFields ?? []).flatMap((entry, i) => {
      const at = path.child('managedFields').index(i)
      const errors: FieldError[] = []
      if (!entry.operation) errors.push(fieldError.required(at.child('operation'), 'must not be empty'))
      else if (entry.operation !== 'Apply' && entry.operation !== 'Update')
        errors.push(fieldError.notSupported(at.child('operation'), entry.operation, ['Apply', 'Update']))
      if (entry.fieldsType && entry.fieldsType !== 'FieldsV1') errors.push(fieldError.invalid(at.child('fieldsType'), entry.fieldsType, 'must be `FieldsV1`'))
      errors.push(...validateFieldManager(entry.manager ?? '', at.child('manager')))
      if ((entry.subresource ?? '').length > 256) errors.push(fieldError.tooLong(at.child('subresource'), 256))
      return errors
    }),
  ]
}

/** The faults of a field manager's name. */
function validateFieldManager(manager: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (manager.length <= 128 && /^[\x20-\x7e]*$/.test(manager)) return errors
  if (manager.length > 128) errors.push(fieldError.tooLong(path, 128))
  const position = [...manager].findIndex((char) => /[\p{C}\p{Zl}\p{Zp}]/u.test(char))
  if (position >= 0) {
    const code = ([...manager][position]?.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    errors.push(fieldError.invalid(path, manager, `invalid character U+${code} (at position ${position})`))
  }
  return errors
}

function validateOwnerReferences(references: readonly Readonly<OwnerReference>[] | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  let controller = ''
  for (const [i, reference] of (references ?? []).entries()) {
    const at = path.index(i)
    const empty = 'must not be empty'
    if (!reference.apiVersion) errors.push(fieldError.required(at.child('apiVersion'), empty))
    else if (reference.apiVersion.split('/').length > 2 || parseGroupVersion(reference.apiVersion).version === '')
      errors.push(fieldError.invalid(at.child('apiVersion'), reference.apiVersion, 'must be <group>/<version> or <version>'))
    if (!reference.kind) errors.push(fieldError.required(at.child('kind'), empty))
    if (!reference.name) errors.push(fieldError.required(at.child('name'), empty))
    if (!reference.uid) errors.push(fieldError.required(at.child('uid'), empty))
    if (reference.apiVersion === 'v1' && reference.kind === 'Event')
      errors.push(fieldError.invalid(at, reference, '/v1, Kind=Event is disallowed from being an owner'))
    if (!reference.controller) continue
    const name = `${reference.kind}/${reference.name}`
    if (controller) {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`
      errors.push(fieldError.invalid(path, references, detail))
    } else controller = name
  }
  return errors
}

function utf8Length(text: string): number {
  let bytes = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x80) bytes += 1
    else if (code < 0x800) bytes += 2
    else if (code >= 0xd800 && code < 0xdc00) {
      bytes += 4
      i++
    } else bytes += 3
  }
  return bytes
}
