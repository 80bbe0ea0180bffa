/**
 * CEL's types (L1, pure): what the checker reasons about and what declarations are written in.
 * Object types carry their fields, so no registry of types stands between a schema and the checker.
 * Upstream: cel-go common/types/types.go (v0.26).
 */

export type SimpleKind = 'bool' | 'int' | 'uint' | 'double' | 'string' | 'bytes' | 'null' | 'timestamp' | 'duration' | 'dyn' | 'error'

export interface SimpleType {
  readonly kind: SimpleKind
}
export interface ListType {
  readonly kind: 'list'
  readonly element: CelType
}
export interface MapType {
  readonly kind: 'map'
  readonly key: CelType
  readonly value: CelType
}
/** A type with named fields. Two object types are the same when their names are. */
export interface ObjectType {
  readonly kind: 'object'
  readonly name: string
  /** By the name that expressions write (already escaped); a Map, or a rule. */
  readonly fields: { get(field: string): CelType | undefined }
}
/** A type known by name only, such as `optional_type(int)` or `net.IP`; functions give it a meaning. */
export interface OpaqueType {
  readonly kind: 'opaque'
  readonly name: string
  readonly parameters: readonly CelType[]
}
/** The type of types: `type(1)` has the type `type(int)`. */
export interface TypeType {
  readonly kind: 'type'
  readonly of: CelType | undefined
}
/** A placeholder in a generic declaration, such as A in `list(A)`; ids are made unique for each use. */
export interface TypeParameter {
  readonly kind: 'parameter'
  readonly name: string
}
/** A primitive that may also be null. */
export interface WrapperType {
  readonly kind: 'wrapper'
  readonly wrapped: SimpleType
}

export type CelType = SimpleType | ListType | MapType | ObjectType | OpaqueType | TypeType | TypeParameter | WrapperType

export const boolType: SimpleType = { kind: 'bool' }
export const intType: SimpleType = { kind: 'int' }
export const uintType: SimpleType = { kind: 'uint' }
export const doubleType: SimpleType = { kind: 'double' }
export const stringType: SimpleType = { kind: 'string' }
export const bytesType: SimpleType = { kind: 'bytes' }
export const nullType: SimpleType = { kind: 'null' }
export const timestampType: SimpleType = { kind: 'timestamp' }
export const durationType: SimpleType = { kind: 'duration' }
/** Stands for every type: checks on it wait until run time. */
export const dynType: SimpleType = { kind: 'dyn' }
/** The type of an expression that has already been reported: it fits everywhere, so that one fault gives one message. */
export const errorType: SimpleType = { kind: 'error' }

export const listType = (element: CelType): ListType => ({ kind: 'list', element })
export const mapType = (key: CelType, value: CelType): MapType => ({ kind: 'map', key, value })
export const opaqueType = (name: string, ...parameters: CelType[]): OpaqueType => ({ kind: 'opaque', name, parameters })
export const optionalType = (value: CelType): OpaqueType => opaqueType('optional_type', value)
export const typeType = (of?: CelType): TypeType => ({ kind: 'type', of })
export const typeParameter = (name: string): TypeParameter => ({ kind: 'parameter', name })
export const wrapperType = (wrapped: SimpleType): WrapperType => ({ kind: 'wrapper', wrapped })

/** An object type with these fields. Names are unique within an environment: they decide equality. */
export function objectType(name: string, fields: ReadonlyMap<string, CelType> | Readonly<Record<string, CelType>>): ObjectType {
  return { kind: 'object', name, fields: fields instanceof Map ? (fields as ReadonlyMap<string, CelType>) : new Map(Object.entries(fields)) }
}

/** An object type in which every name is a field whose type waits until run time. */
export const openObjectType = (name: string): ObjectType => ({ kind: 'object', name, fields: { get: () => dynType } })

export const isDyn = (type: CelType): boolean => type.kind === 'dyn' || type.kind === 'error'
export const isOptional = (type: CelType): type is OpaqueType => type.kind === 'opaque' && type.name === 'optional_type'

const wellKnownNames: Partial<Record<SimpleKind, string>> = {
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
  null: 'null_type',
}

/** The name that `type(x)` prints, without parameters. */
export function typeName(type: CelType): string {
  switch (type.kind) {
    case 'object':
    case 'opaque':
    case 'parameter':
      return type.name
    case 'wrapper':
      return typeName(type.wrapped)
    default:
      return wellKnownNames[type.kind as SimpleKind] ?? type.kind
  }
}

const displayNames: Partial<Record<SimpleKind, string>> = { timestamp: 'timestamp', duration: 'duration', null: 'null', error: '!error!' }

/** The type as messages of the checker write it, such as `list(map(string, dyn))`. */
export function formatType(type: CelType): string {
  switch (type.kind) {
    case 'list':
      return `list(${formatType(type.element)})`
    case 'map':
      return `map(${formatType(type.key)}, ${formatType(type.value)})`
    case 'opaque':
      return type.parameters.length === 0 ? type.name : `${type.name}(${type.parameters.map(formatType).join(', ')})`
    case 'type':
      return type.of ? `type(${formatType(type.of)})` : 'type'
    case 'wrapper':
      return `wrapper(${formatType(type.wrapped)})`
    case 'object':
    case 'parameter':
      return type.name
    default:
      return displayNames[type.kind] ?? type.kind
  }
}

/** The type with its parameters by the names of run time, such as `list(google.protobuf.Timestamp)`. Upstream: cel-go's Type.String. */
export function typeString(type: CelType): string {
  const parameters = parametersOf(type)
  if (type.kind === 'wrapper') return `wrapper(${typeString(type.wrapped)})`
  return parameters.length === 0 ? typeName(type) : `${typeName(type)}(${parameters.map(typeString).join(', ')})`
}

/** The types that a type is made of: a list's element, a map's key and value. */
export function parametersOf(type: CelType): readonly CelType[] {
  switch (type.kind) {
    case 'list':
      return [type.element]
    case 'map':
      return [type.key, type.value]
    case 'opaque':
      return type.parameters
    case 'type':
      return type.of ? [type.of] : []
    default:
      return []
  }
}

/** Whether two types are the same, parameters included. */
export function typesEqual(a: CelType, b: CelType): boolean {
  if (a === b) return true
  if (a.kind !== b.kind) return false
  switch (a.kind) {
    case 'list':
      return typesEqual(a.element, (b as ListType).element)
    case 'map':
      return typesEqual(a.key, (b as MapType).key) && typesEqual(a.value, (b as MapType).value)
    case 'object':
    case 'parameter':
      return a.name === (b as ObjectType).name
    case 'opaque': {
      const other = b as OpaqueType
      return a.name === other.name && a.parameters.length === other.parameters.length && a.parameters.every((p, i) => typesEqual(p, other.parameters[i]!))
    }
    case 'wrapper':
      return typesEqual(a.wrapped, (b as WrapperType).wrapped)
    case 'type': {
      const other = (b as TypeType).of
      return a.of === other || (a.of !== undefined && other !== undefined && typesEqual(a.of, other))
    }
    default:
      return true
  }
}
