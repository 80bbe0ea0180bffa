/**
 * Checks that a schema is structural (L1): every field has a type outside of allOf, anyOf, oneOf and not, which only add restrictions.
 * Upstream: apiextensions-apiserver/pkg/apiserver/schema (validation.go, complete.go, convert.go; v1.36).
 */
import type { CustomResourceDefinitionSpec } from '#api/gen/types/apiextensions.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { append } from '#base/extremes'
import { patternCost, workOnce } from '#cel/compilingInSteps'
import { compileRegularExpression } from '#cel/regularExpression'
import { additionalOf, itemsOf, type Props, schemasIn } from './schemaWalk.ts'

const noFaults: readonly FieldError[] = []

type Level = 'root' | 'item' | 'field'

/** The faults of a schema at `path`, sorted by their texts. */
export function structuralFaults(props: Props, path: FieldPath): FieldError[] {
  const nodes = nodesOf(props)
  const faultOfPattern = checkPatterns(nodes)
  return workOnce('structure', nodes.length, () =>
    [...invariantFaults(props, 'root', path, faultOfPattern), ...completenessFaults(props, props, path, path)].sort((a, b) =>
      `${a.field}: ${a.body}` < `${b.field}: ${b.body}` ? -1 : 1,
    ),
  )
}

/** The error of a pattern; undefined when it is valid. */
type FaultOfPattern = (pattern: string) => string | undefined

/** Compiles each pattern once, since definitions repeat them. */
function checkPatterns(nodes: readonly Props[]): FaultOfPattern {
  const faults = new Map<string, string | undefined>()
  for (const { pattern } of nodes) {
    if (pattern && !faults.has(pattern))
      faults.set(
        pattern,
        workOnce(pattern, patternCost(pattern), () => faultOf(pattern)),
      )
  }
  return (pattern) => faults.get(pattern)
}

function faultOf(pattern: string): string | undefined {
  try {
    compileRegularExpression(pattern)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** To list a node takes a tenth of the time that it takes to check and plan one of an expression. */
const costPerListedNode = 0.1

/** Every schema in `props`, itself first: a part of the work by itself. */
export function nodesOf(props: Props | undefined): readonly Props[] {
  return workOnce(
    'nodes',
    (nodes) => nodes.length * costPerListedNode,
    () => schemasIn(props),
  )
}

/** What a schema holds that no structural schema can express; undefined when there is nothing. */
export function unsupportedMember(props: Props): string | undefined {
  const nodes = nodesOf(props)
  return workOnce('unsupported', nodes.length / 2, () => unsupportedIn(nodes))
}

function unsupportedIn(nodes: readonly Props[]): string | undefined {
  for (const one of nodes) {
    const member =
      (one.id && 'id') ||
      (one.$schema && 'schema') ||
      (one.$ref && '$ref') ||
      (hasMembers(one.patternProperties) && 'patternProperties') ||
      (hasMembers(one.dependencies) && 'dependencies') ||
      (one.additionalItems !== undefined && 'additionalItems') ||
      (hasMembers(one.definitions) && 'definitions')
    if (member) return `OpenAPIV3Schema '${member}' is not supported`
    if (Array.isArray(one.items)) return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if (one['x-kubernetes-preserve-unknown-fields'] === false) return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
  }
  return undefined
}

const hasMembers = (map: object | undefined) => Object.keys(map ?? {}).length > 0

/** The message of the NonStructuralSchema condition; undefined when all schemas are structural. */
export function schemaViolations(spec: Frozen<CustomResourceDefinitionSpec>): string | undefined {
  const errors: FieldError[] = []
  if (spec.preserveUnknownFields) errors.push(fieldError.invalid(FieldPath.of('spec', 'preserveUnknownFields'), true, 'must be false'))
  for (const [index, { schema }] of spec.versions.entries()) {
    const props = schema?.openAPIV3Schema
    if (props) append(errors, structuralFaults(props, FieldPath.of('spec', 'versions').index(index).child('schema', 'openAPIV3Schema')))
  }
  const texts = [...new Set(errors.map(({ field, body }) => `${field}: ${body}`))]
  return texts.length === 0 ? undefined : texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
}

const emptyType: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function invariantFaults(props: Props, level: Level, path: FieldPath, faultOfPattern: FaultOfPattern): FieldError[] {
  const errors: FieldError[] = []
  const { type = '' } = props
  const items = itemsOf(props)
  if (type === 'array' && !items) errors.push(fieldError.required(path.child('items'), 'must be specified'))
  if (items) append(errors, invariantFaults(items, 'item', path.child('items'), faultOfPattern))
  const { properties } = props
  const at = path.child('properties')
  if (properties) for (const name of Object.keys(properties)) append(errors, invariantFaults(properties[name] as Props, 'field', at.key(name), faultOfPattern))
  const additional = props.additionalProperties !== undefined
  if (additional && level === 'root') errors.push(fieldError.forbidden(path.child('additionalProperties'), 'must not be used at the root'))
  const additionalSchema = additionalOf(props)
  if (additionalSchema) append(errors, invariantFaults(additionalSchema, 'field', path.child('additionalProperties'), faultOfPattern))
  const embedded = props['x-kubernetes-embedded-resource'] === true
  const preserve = props['x-kubernetes-preserve-unknown-fields'] === true
  const intOrString = props['x-kubernetes-int-or-string'] === true
  const notWithIntOrString = 'must be false if x-kubernetes-int-or-string is true'
  if (intOrString && preserve) errors.push(fieldError.invalid(path.child('x-kubernetes-preserve-unknown-fields'), true, notWithIntOrString))
  if (intOrString && embedded) errors.push(fieldError.invalid(path.child('x-kubernetes-embedded-resource'), true, notWithIntOrString))
  const skipped = { anyOf: isIntOrStringAnyOf(props.anyOf), firstAllOf: isIntOrStringAnyOf(props.allOf?.[0]?.anyOf) }
  append(errors, logicFaults(props, level, path, faultOfPattern, skipped))
  const typePath = path.child('type')
  if (embedded && type !== 'object') {
    const text = 'must be object if x-kubernetes-embedded-resource is true'
    errors.push(type === '' ? fieldError.required(typePath, text) : fieldError.invalid(typePath, type, text))
  } else if (type === '' && !intOrString && !preserve) errors.push(fieldError.required(typePath, emptyType[level]))
  if (embedded && additional) errors.push(fieldError.forbidden(path.child('additionalProperties'), 'must not be used if x-kubernetes-embedded-resource is set'))
  if (level === 'root' && type !== '' && type !== 'object') errors.push(fieldError.invalid(typePath, type, 'must be object at the root'))
  append(errors, objectFaults(props, level, path, embedded))
  if (embedded && !preserve && !hasMembers(props.properties)) {
    const text = 'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields'
    errors.push(fieldError.required(path.child('properties'), text))
  }
  return errors
}

/** What objects have of themselves may hardly be restricted. */
function objectFaults({ properties }: Props, level: Level, path: FieldPath, embedded: boolean): readonly FieldError[] {
  if (!properties) return noFaults
  const errors: FieldError[] = []
  const isObject = level === 'root' || embedded
  const at = (name: string) => path.child('properties').key(name)
  for (const name of ['kind', 'apiVersion']) {
    const member = ownValue(properties, name)
    if (isObject && member && member.type !== 'string') errors.push(fieldError.invalid(at(name).child('type'), member.type ?? '', 'must be string'))
  }
  const { metadata } = properties
  if (!metadata) return errors
  if (isObject && metadata.type !== 'object') errors.push(fieldError.invalid(at('metadata').child('type'), metadata.type ?? '', 'must be object'))
  const onlyNames = Object.keys(metadata.properties ?? {}).every((name) => name === 'name' || name === 'generateName')
  const others = Object.entries(metadata).some(([name, value]) => value !== undefined && name !== 'type' && name !== 'default' && name !== 'properties')
  if (level === 'root' && (!onlyNames || others)) {
    errors.push(fieldError.forbidden(at('metadata'), 'must not specify anything other than name and generateName, but metadata is implicitly specified'))
  }
  return errors
}

/** anyOf of exactly integer and string, which an int-or-string may repeat. */
function isIntOrStringAnyOf(anyOf: Props['anyOf']): boolean {
  return anyOf?.length === 2 && ['integer', 'string'].every((type, at) => anyOf[at]?.type === type && Object.keys(anyOf[at] ?? {}).length === 1)
}

/** Schemas that already mark a value as int-or-string. */
interface Skipped {
  readonly anyOf: boolean
  readonly firstAllOf: boolean
}

const nothingSkipped: Skipped = { anyOf: false, firstAllOf: false }

function logicFaults(props: Props, level: Level, path: FieldPath, faultOfPattern: FaultOfPattern, skipped: Skipped): readonly FieldError[] {
  if (!props.anyOf && !props.allOf && !props.oneOf && !props.not && !props.pattern) return noFaults
  const errors: FieldError[] = []
  const nested = (one: Props, at: FieldPath, skipAnyOf = false) =>
    append(errors, nestedFaults(one, level, at, faultOfPattern, skipAnyOf ? { ...nothingSkipped, anyOf: true } : nothingSkipped))
  if (!skipped.anyOf) for (const [index, one] of (props.anyOf ?? []).entries()) nested(one, path.child('anyOf').index(index))
  for (const [index, one] of (props.allOf ?? []).entries()) nested(one, path.child('allOf').index(index), skipped.firstAllOf && index === 0)
  for (const [index, one] of (props.oneOf ?? []).entries()) nested(one, path.child('oneOf').index(index))
  if (props.not) nested(props.not, path.child('not'))
  const why = props.pattern && faultOfPattern(props.pattern)
  if (why) errors.push(fieldError.invalid(path.child('pattern'), props.pattern, `must be a valid regular expression, but isn't: ${why}`))
  return errors
}

/** Keywords that are forbidden inside allOf, anyOf, oneOf and not, with upstream's messages. */
const forbiddenInside: readonly (readonly [keyof Props & string, string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

function nestedFaults(props: Props, level: Level, path: FieldPath, faultOfPattern: FaultOfPattern, skipped = nothingSkipped): FieldError[] {
  const errors = [...logicFaults(props, level, path, faultOfPattern, skipped)]
  const items = itemsOf(props)
  if (items) append(errors, nestedFaults(items, level, path.child('items'), faultOfPattern))
  for (const [name, child] of Object.entries(props.properties ?? {}))
    append(errors, nestedFaults(child, 'field', path.child('properties').key(name), faultOfPattern))
  for (const [name, text] of forbiddenInside) {
    const value = props[name]
    const absent = value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0)
    if (!absent) errors.push(fieldError.forbidden(path.child(name), text))
  }
  if (props.properties?.metadata) errors.push(fieldError.forbidden(path.child('properties').key('metadata'), 'must not be specified in a nested context'))
  return errors
}

/** Every field that logic restricts must be specified outside of it. `vPath` is where the logic stands, `sPath` where the field would. */
function completenessFaults(logic: Props, structure: Props | undefined, sPath: FieldPath, vPath: FieldPath): FieldError[] {
  const nested = (props: Props | undefined, at: FieldPath) => (props ? nestedCompleteness(props, structure, sPath, at) : [])
  return [
    ...nested(logic.not, vPath.child('not')),
    ...(['allOf', 'anyOf', 'oneOf'] as const).flatMap((word) => (logic[word] ?? []).flatMap((one, index) => nested(one, vPath.child(word).index(index)))),
  ]
}

function nestedCompleteness(logic: Props, structure: Props | undefined, sPath: FieldPath, vPath: FieldPath): FieldError[] {
  if (!structure) return [fieldError.required(sPath, `because it is defined in ${vPath}`)]
  const errors = completenessFaults(logic, structure, sPath, vPath)
  const items = itemsOf(logic)
  if (items) errors.push(...nestedCompleteness(items, itemsOf(structure), sPath.child('items'), vPath.child('items')))
  for (const [name, child] of Object.entries(logic.properties ?? {})) {
    const [sChild, vChild] = [sPath.child('properties').key(name), vPath.child('properties').key(name)]
    errors.push(...nestedCompleteness(child, ownValue(structure.properties, name), sChild, vChild))
  }
  return errors
}
