/**
 * The rules for objects embedded in custom resources (x-kubernetes-embedded-resource; L1): they say what they are, and their metadata is
 * in order. Upstream: apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go (v1.36).
 */
import { type FieldError, FieldPath, fieldError } from '../machinery/fieldPath.ts'
import type { ObjectMeta } from '../machinery/meta.ts'
import { isDns1035Label, nameIsPathSegment } from '../machinery/names.ts'
import { validateObjectMeta } from '../machinery/objectMeta.ts'
import { isObject, type JsonObject } from '../machinery/objects.ts'
import type { Schema } from './schema.ts'

/** The faults of all embedded objects in a value. */
export function validateEmbeddedResources(value: unknown, schema: Schema | undefined, path = FieldPath.of()): FieldError[] {
  if (!schema) return []
  if (Array.isArray(value)) return value.flatMap((item, index) => validateEmbeddedResources(item, schema.element, path.index(index)))
  if (!isObject(value)) return []
  const errors = schema.embeddedResource ? objectFaults(value, path) : []
  for (const name of Object.keys(value)) {
    const field = schema.fields?.get(name)?.schema
    // Named definitions are the server's own metadata.
    if (field) errors.push(...(field.definition ? [] : validateEmbeddedResources(value[name], field, path.child(name))))
    else if (schema.type === 'map') errors.push(...validateEmbeddedResources(value[name], schema.element, path.key(name)))
  }
  return errors
}

function objectFaults(object: JsonObject, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const name of ['apiVersion', 'kind'] as const) {
    const at = path.child(name)
    const text = object[name]
    if (text === undefined) errors.push(fieldError.required(at))
    else if (typeof text !== 'string') errors.push(fieldError.invalid(at, text, 'must be a string'))
    else if (text === '') errors.push(fieldError.invalid(at, text, 'must not be empty'))
    else if (name === 'apiVersion') {
      if (text.split('/').length > 2) errors.push(fieldError.invalid(at, text, `unexpected GroupVersion string: ${text}`))
    } else {
      const faults = isDns1035Label(text.toLowerCase())
      if (faults.length > 0) errors.push(fieldError.invalid(at, text, `may have mixed case, but should otherwise match: ${faults.join(',')}`))
    }
  }
  if (isObject(object.metadata)) {
    const metadata = object.metadata as ObjectMeta
    // An embedded object need not have a name.
    errors.push(
      ...validateObjectMeta({ ...metadata, name: metadata.name || 'fakename' }, Boolean(metadata.namespace), nameIsPathSegment, path.child('metadata')),
    )
  }
  return errors
}
