/**
 * Validation of openAPIV3Schema itself (L1): the allowed keywords and combinations of Kubernetes' own markers.
 * Upstream: ValidateCustomResourceDefinitionOpenAPISchema of apiextensions-apiserver/pkg/apis/apiextensions/validation (v1.36).
 */
import { repeatedAt } from '#api/machinery/duplicates'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ownValue } from '#base/bareMap'
import { append } from '#base/extremes'
import { workOnce } from '#cel/compilingInSteps'
import { ruleTextFaults } from './ruleTexts.ts'
import { additionalOf, itemsOf, type Props } from './schemaWalk.ts'

export interface SchemaOptions {
  readonly requireValidPropertyType: boolean
  readonly requireAtomicSetType: boolean
  readonly requireMapListKeysMapSetValidation: boolean
}

/** What the walk knows of where it is. */
export interface Place {
  readonly isRoot: boolean
  /** Why defaults may not be given here; undefined: they may. */
  readonly noDefaults?: string | undefined
  readonly insideMetadata: boolean
  /** The nearest ancestor whose old and new values cannot be matched with each other. */
  readonly uncorrelated?: FieldPath | undefined
  /** Most values that can exist at this path, from the limits of the enclosing lists and maps; undefined when a limit is missing. */
  readonly maxCardinality?: number | undefined
  /** Inside not, allOf, anyOf and oneOf the types of the enclosing schemas are unknown. */
  readonly insideLogic: boolean
}

/** Faults of the schema and of its CEL rules. Rules are checked only where the schema around them is valid. */
export interface SchemaFaults {
  readonly schema: FieldError[]
  readonly rules: FieldError[]
}

/** Checks the rules of one node; called where it has some and its schema is in order. */
export type RuleCheck = (props: Props, path: FieldPath, place: Place) => FieldError[]

const root: Place = { isRoot: true, insideMetadata: false, insideLogic: false, maxCardinality: 1 }

export function schemaFaults(props: Props, path: FieldPath, options: SchemaOptions, checkRules: RuleCheck | undefined): SchemaFaults {
  return new SchemaWalk(options, checkRules).visit(props, path, root)
}

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const metaFields: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion'])

/** Children of one schema that are looked through in one turn. */
const childrenInPart = 2000
/** In nodes, see compilingInSteps. */
const costPerListedChild = 0.1

class SchemaWalk {
  readonly #options: SchemaOptions
  readonly #checkRules: RuleCheck | undefined
  #isPart = false

  constructor(options: SchemaOptions, checkRules: RuleCheck | undefined) {
    this.#options = options
    this.#checkRules = checkRules
  }

  visit(props: Props, path: FieldPath, place: Place): SchemaFaults {
    const faults: SchemaFaults = { schema: this.#standardFaults(props, path, place), rules: [] }
    const children = this.#childrenOf(props, path, place)
    for (let at = 0; at < children.length; at += childrenInPart) {
      const found = this.#part(children.slice(at, at + childrenInPart))
      append(faults.schema, found.schema)
      append(faults.rules, found.rules)
    }
    faults.schema.push(...markerFaults(props, path), ...listFaults(props, path, this.#options))
    if (this.#options.requireMapListKeysMapSetValidation) faults.schema.push(...mapListKeyFaults(props, path))
    if (!props['x-kubernetes-validations']?.length) return faults
    faults.schema.push(...ruleTextFaults(props, path))
    // A faulty schema can cause misleading faults of its rules.
    if (faults.schema.length === 0 && this.#checkRules && !place.insideLogic) faults.rules.push(...this.#checkRules(props, path, place))
    return faults
  }

  /** A pause runs the work again from its beginning: it finds the children listed, unless they are part of a larger part. */
  #childrenOf(props: Props, path: FieldPath, place: Place): readonly Child[] {
    if (this.#isPart) return childrenOf(props, path, place)
    return workOnce(
      'children',
      ({ length }) => length * costPerListedChild,
      () => childrenOf(props, path, place),
    )
  }

  /** A schema with many children becomes one part of the work, unless it is inside such a part or can have rules. */
  #part(children: readonly Child[]): SchemaFaults {
    if (children.length < childrenInPart || this.#checkRules || this.#isPart) return this.#all(children)
    this.#isPart = true
    try {
      return workOnce('part', children.length, () => this.#all(children))
    } finally {
      this.#isPart = false
    }
  }

  #all(children: readonly Child[]): SchemaFaults {
    const faults: SchemaFaults = { schema: [], rules: [] }
    for (const [child, at, inside] of children) {
      const found = this.visit(child, at, inside)
      append(faults.schema, found.schema)
      append(faults.rules, found.rules)
    }
    return faults
  }

  #standardFaults(props: Props, path: FieldPath, place: Place): FieldError[] {
    const errors: FieldError[] = []
    const { type = '' } = props
    const forbid = (name: string, detail = `${name} is not supported`) => errors.push(fieldError.forbidden(path.child(name), detail))
    if (this.#options.requireValidPropertyType && type !== '' && !types.includes(type)) errors.push(fieldError.notSupported(path.child('type'), type, types))
    if (props.default !== undefined && place.noDefaults !== undefined) forbid('default', `must not be set${place.noDefaults && ` ${place.noDefaults}`}`)
    if (props.id) forbid('id')
    if (props.additionalItems !== undefined) forbid('additionalItems')
    if (Object.keys(props.patternProperties ?? {}).length > 0) forbid('patternProperties')
    if (Object.keys(props.definitions ?? {}).length > 0) forbid('definitions')
    if (props.dependencies !== undefined) forbid('dependencies')
    if (props.$ref !== undefined) forbid('$ref')
    if (type === 'null') forbid('type', 'type cannot be set to null, use nullable as an alternative')
    if (Array.isArray(props.items)) forbid('items', 'items must be a schema object and not an array')
    if (place.insideMetadata && props['x-kubernetes-embedded-resource']) forbid('x-kubernetes-embedded-resource', 'must not be used inside of resource meta')
    if (props.uniqueItems) forbid('uniqueItems', 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic')
    const additional = props.additionalProperties
    if (additional !== undefined && additional !== true && Object.keys(props.properties ?? {}).length > 0) {
      forbid('additionalProperties', 'additionalProperties and properties are mutual exclusive')
    }
    return errors
  }
}

type Child = readonly [Props, FieldPath, Place]

function childrenOf(props: Props, path: FieldPath, here: Place): Child[] {
  const place = { ...here, isRoot: false, maxCardinality: times(here.maxCardinality, maxElements(props)) }
  const children: Child[] = []
  const additional = additionalOf(props)
  if (additional) {
    // Without a value it is not known what would be pruned of a default.
    const noDefaults = place.insideMetadata ? { noDefaults: 'inside additionalProperties applying to object metadata' } : {}
    children.push([additional, path.child('additionalProperties'), { ...place, ...noDefaults }])
  }
  const uncorrelated = place.uncorrelated ?? path
  const properties = path.child('properties')
  for (const [name, child] of Object.entries(props.properties ?? {})) {
    const ofObject = (here.isRoot || props['x-kubernetes-embedded-resource']) && metaFields.has(name)
    // A schema may have tens of thousands of properties: they share the place.
    const inside = ofObject ? { ...place, insideMetadata: true, ...(here.isRoot ? { noDefaults: `in top-level ${name}` } : {}) } : place
    children.push([child, properties.key(name), inside])
  }
  const logic = { ...place, insideLogic: true }
  if (props.not) children.push([props.not, path.child('not'), logic])
  for (const word of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const [index, one] of (props[word] ?? []).entries()) children.push([one, path.child(word).index(index), logic])
  }
  for (const [name, child] of Object.entries(props.definitions ?? {})) children.push([child, path.child('definitions').key(name), logic])
  // Old and new items are matched by their keys; without keys they cannot be matched.
  const inList = props['x-kubernetes-list-type'] === 'map' ? place : { ...place, uncorrelated }
  const items = itemsOf(props)
  if (items) children.push([items, path.child('items'), inList])
  return children
}

function times(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.min(a * b, 2 ** 64)
}

/** How many children of one schema data can have; undefined without a limit. */
function maxElements({ type, additionalProperties, maxProperties, maxItems }: Props): number | undefined {
  if (type === 'array') return maxItems === undefined ? undefined : Math.max(0, maxItems)
  if (type !== 'object' || additionalProperties === undefined) return 1
  return maxProperties === undefined ? undefined : Math.max(0, maxProperties)
}

function markerFaults(props: Props, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const { type = '' } = props
  const mapType = props['x-kubernetes-map-type']
  if (props['x-kubernetes-preserve-unknown-fields'] === false)
    errors.push(fieldError.invalid(path.child('x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'))
  if (mapType !== undefined && type !== 'object') errors.push(wrongType(type, path, 'must be object if x-kubernetes-map-type is specified'))
  if (mapType !== undefined && mapType !== 'atomic' && mapType !== 'granular')
    errors.push(fieldError.notSupported(path.child('x-kubernetes-map-type'), mapType, ['atomic', 'granular']))
  return errors
}

function wrongType(type: string, path: FieldPath, detail: string): FieldError {
  return type === '' ? fieldError.required(path.child('type'), detail) : fieldError.invalid(path.child('type'), type, detail)
}

function listFaults(props: Props, path: FieldPath, { requireAtomicSetType }: SchemaOptions): FieldError[] {
  const errors: FieldError[] = []
  const listType = props['x-kubernetes-list-type']
  const keys = props['x-kubernetes-list-map-keys'] ?? []
  if (listType === undefined && keys.length === 0) return []
  const at = path.child('x-kubernetes-list-type')
  if (listType !== undefined && props.type !== 'array') errors.push(wrongType(props.type ?? '', path, 'must be array if x-kubernetes-list-type is specified'))
  else if (requireAtomicSetType && listType === 'set') errors.push(...setItemFaults(itemsOf(props), path.child('items')))
  if (listType !== undefined && !['atomic', 'set', 'map'].includes(listType)) errors.push(fieldError.notSupported(at, listType, ['atomic', 'set', 'map']))
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty'
    errors.push(listType === undefined ? fieldError.required(at, detail) : fieldError.invalid(at, listType, detail))
  }
  return listType === 'map' ? [...errors, ...mapListFaults(props, keys, path)] : errors
}

const mustBeAtomic = 'must be atomic as item of a list with x-kubernetes-list-type=set'

function setItemFaults(items: Props | undefined, path: FieldPath): FieldError[] {
  if (isAtomic(items)) return []
  const marker = items?.type === 'array' ? 'x-kubernetes-list-type' : 'x-kubernetes-map-type'
  return [fieldError.invalid(path.child(marker), items?.['x-kubernetes-list-type'], mustBeAtomic)]
}

/** Scalars are; lists are by default, objects are not. */
function isAtomic(items: Props | undefined): boolean {
  if (items?.type === 'array') return (items['x-kubernetes-list-type'] ?? 'atomic') === 'atomic'
  return items?.type !== 'object' || items['x-kubernetes-map-type'] === 'atomic'
}

function mapListFaults(props: Props, keys: readonly string[], path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const keysPath = path.child('x-kubernetes-list-map-keys')
  const items = itemsOf(props)
  if (keys.length === 0) errors.push(fieldError.required(keysPath, 'must not be empty if x-kubernetes-list-type is map'))
  if (props.items === undefined) errors.push(fieldError.required(path.child('items'), 'must have a schema if x-kubernetes-list-type is map'))
  else if (!items) errors.push(fieldError.invalid(path.child('items'), props.items, 'must only have a single schema if x-kubernetes-list-type is map'))
  if (!items) return errors
  if (items.type !== 'object') {
    errors.push(fieldError.invalid(path.child('items', 'type'), items.type ?? '', "must be object if parent array's x-kubernetes-list-type is map"))
    return errors
  }
  const repeated = repeatedAt(keys)
  for (const [index, key] of keys.entries()) {
    const property = ownValue(items.properties, key)
    if (!property) errors.push(fieldError.invalid(keysPath, keys, 'entries must all be names of item properties'))
    else if (property.type === 'array' || property.type === 'object') {
      const at = path.child('items', 'properties').key(key).child('type')
      errors.push(fieldError.invalid(at, items.type, "must be a scalar type if parent array's x-kubernetes-list-type is map"))
    }
    if (repeated.has(index)) errors.push(fieldError.invalid(keysPath, keys, 'must not contain duplicate entries'))
  }
  return errors
}

/** Keys are always there, and items of sets and maps are never null. */
function mapListKeyFaults(props: Props, path: FieldPath): FieldError[] {
  const listType = props['x-kubernetes-list-type']
  const items = itemsOf(props)
  if (!items || (listType !== 'set' && listType !== 'map')) return []
  const errors: FieldError[] = []
  if (items.nullable) errors.push(fieldError.forbidden(path.child('items', 'nullable'), `cannot be nullable when x-kubernetes-list-type is ${listType}`))
  if (listType === 'set') return errors
  for (const key of props['x-kubernetes-list-map-keys'] ?? []) {
    const property = ownValue(items.properties, key)
    if (!property) continue
    const at = path.child('items', 'properties').key(key)
    const inKeys = 'this property is in x-kubernetes-list-map-keys, so it'
    if (!items.required?.includes(key) && property.default === undefined)
      errors.push(fieldError.required(at.child('default'), `${inKeys} must have a default or be a required property`))
    if (property.nullable) errors.push(fieldError.forbidden(at.child('nullable'), `${inKeys} cannot be nullable`))
  }
  return errors
}

/** Whether an old schema breaks a rule that came later: it is not held to it then. */
export function breaksAtomicSets(props: Props): boolean {
  return props['x-kubernetes-list-type'] === 'set' && !isAtomic(itemsOf(props))
}

export function breaksMapListKeys(props: Props, path: FieldPath): boolean {
  return mapListKeyFaults(props, path).length > 0
}

export function hasUnknownType({ type }: Props): boolean {
  return Boolean(type) && !types.includes(type as string)
}
