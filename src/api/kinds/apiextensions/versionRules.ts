/**
 * The rules for the parts of a CustomResourceDefinition's versions other than the schema (L1): names, subresources, printer columns, selectable
 * fields, deprecation. Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation (v1.36).
 */
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
  SelectableField,
} from '#api/gen/types/apiextensions.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1035Label } from '#api/machinery/names'
import { resolveFieldPath } from './fieldPaths.ts'
import type { Props } from './schemaWalk.ts'

const maxSelectableFields = 8

/** The faults of names, in spec and in status; that some are required is the spec's rule alone. */
export function namesFaults(names: Frozen<CustomResourceDefinitionNames>, path: FieldPath): FieldError[] {
  const label = (at: FieldPath, value: string | undefined, mixedCase = false): FieldError[] => {
    if (!value) return []
    const faults = isDns1035Label(mixedCase ? value.toLowerCase() : value)
    const prefix = mixedCase ? 'may have mixed case, but should otherwise match: ' : ''
    return faults.length > 0 ? [fieldError.invalid(at, value, `${prefix}${faults.join(',')}`)] : []
  }
  const { plural, singular, kind, listKind, shortNames = [], categories = [] } = names
  return [
    ...label(path.child('plural'), plural),
    ...label(path.child('singular'), singular),
    ...label(path.child('kind'), kind, true),
    ...label(path.child('listKind'), listKind, true),
    ...shortNames.flatMap((name, index) => label(path.child('shortNames').index(index), name)),
    ...(kind && kind === listKind ? [fieldError.invalid(path.child('listKind'), listKind, 'kind and listKind may not be the same')] : []),
    ...categories.flatMap((name, index) => label(path.child('categories').index(index), name)),
  ]
}

/** A warning is one printable line, and only for deprecated versions. */
export function deprecationFaults({ deprecated, deprecationWarning: warning }: Frozen<CustomResourceDefinitionVersion>, path: FieldPath): FieldError[] {
  if (warning === undefined) return []
  const bad = (why: string) => fieldError.invalid(path.child('deprecationWarning'), warning, why)
  if (!deprecated) return [bad('can only be set for deprecated versions')]
  const errors: FieldError[] = []
  if (Buffer.byteLength(warning) > 256) errors.push(bad('must be <= 256 characters long'))
  if (warning === '') errors.push(bad('must not be an empty string'))
  const odd = warning.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u)
  if (odd >= 0) errors.push(bad(`must only contain printable UTF-8 characters; non-printable character found at index ${odd}`))
  return errors
}

/** Columns and scales take the simplest of paths: dots and names. */
function simplePathFaults(text: string, path: FieldPath): FieldError[] {
  return text.startsWith('.') ? [] : [fieldError.invalid(path, text, 'must be a simple json path starting with .')]
}

/** The paths of the scale subresource lead into the right halves of the object. */
export function subresourcesFaults(subresources: Frozen<CustomResourceSubresources> | undefined, path: FieldPath): FieldError[] {
  const scale = subresources?.scale
  if (!scale) return []
  const faults = (name: string, value: string | undefined, roots: readonly string[], where: string, required: boolean): FieldError[] => {
    const at = path.child(`scale.${name}`)
    if (!value) return required ? [fieldError.required(at)] : []
    const simple = simplePathFaults(value, at)
    if (simple.length > 0) return simple
    return roots.some((one) => value.startsWith(one)) ? [] : [fieldError.invalid(at, value, `should be a json path under ${where}`)]
  }
  return [
    ...faults('specReplicasPath', scale.specReplicasPath, ['.spec.'], '.spec', true),
    ...faults('statusReplicasPath', scale.statusReplicasPath, ['.status.'], '.status', true),
    ...faults('labelSelectorPath', scale.labelSelectorPath, ['.spec.', '.status.'], 'either .spec or .status', false),
  ]
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']

/** The faults of one printer column. */
export function columnFaults(column: Frozen<CustomResourceColumnDefinition>, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const { name, type, format, jsonPath } = column
  const oneOfTypes = `must be one of ${columnTypes.join(',')}`
  if (!name) errors.push(fieldError.required(path.child('name')))
  if (!type) errors.push(fieldError.required(path.child('type'), oneOfTypes))
  else if (!columnTypes.includes(type)) errors.push(fieldError.invalid(path.child('type'), type, oneOfTypes))
  if (format && !columnFormats.includes(format)) errors.push(fieldError.invalid(path.child('format'), format, `must be one of ${columnFormats.join(',')}`))
  if (!jsonPath) errors.push(fieldError.required(path.child('JSONPath')))
  else errors.push(...simplePathFaults(jsonPath, path.child('JSONPath')))
  return errors
}

/** Selectable fields are few, and scalars that the schema knows. */
export function selectableFieldsFaults(fields: readonly Frozen<SelectableField>[], schema: Props, path: FieldPath, allowTooMany: boolean): FieldError[] {
  const errors: FieldError[] = []
  const seen = new Set<string>()
  for (const [index, { jsonPath }] of fields.entries()) {
    const at = path.index(index).child('jsonPath')
    if (!jsonPath) {
      errors.push(fieldError.required(at))
      continue
    }
    const found = resolveFieldPath(jsonPath, schema, { arrays: false })
    if (!found.ok) {
      errors.push(fieldError.invalid(at, jsonPath, `is an invalid path: ${found.why}`))
      continue
    }
    if (found.first === 'metadata') errors.push(fieldError.invalid(at, jsonPath, 'must not point to fields in metadata'))
    if (!['string', 'boolean', 'integer'].includes(found.props?.type ?? '')) {
      const detail = 'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
      errors.push(fieldError.invalid(at, jsonPath, detail))
    }
    if (seen.has(found.path.toString())) errors.push(fieldError.duplicate(at, jsonPath))
    seen.add(found.path.toString())
  }
  if (seen.size > maxSelectableFields && !allowTooMany) errors.push(fieldError.tooMany(path, seen.size, maxSelectableFields))
  return errors
}

/** More fields than are allowed today may stay as they are. */
export function mayHaveTooMany(fields: readonly Frozen<SelectableField>[] | undefined, old: readonly Frozen<SelectableField>[] | undefined): boolean {
  return (old?.length ?? 0) > maxSelectableFields && JSON.stringify(fields) === JSON.stringify(old)
}
