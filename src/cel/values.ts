/**
 * CEL's values at run time (L1, pure). Most are plain JavaScript, chosen so that Kubernetes' data needs no conversion:
 *
 *   int        number when it is a safe integer, bigint beyond        bool    boolean        null       null
 *   double     Double (rare in the API, so it pays for the box)       string  string         bytes      Uint8Array
 *   uint       Uint     timestamp  Timestamp     duration  Duration   type    TypeValue      optional   Optional
 *   list       ListValue      map  MapValue      object    ObjectValue      opaque   OpaqueValue
 *
 * Lists, maps and objects are interfaces, so that JSON is wrapped lazily (json.ts) and never copied.
 * Upstream: cel-go common/types (v0.26).
 */
import type { CelType } from './types.ts'
import { formatType } from './types.ts'

export type Value =
  | CelInt
  | boolean
  | null
  | string
  | Uint8Array
  | Double
  | Uint
  | Timestamp
  | Duration
  | TypeValue
  | Optional
  | ListValue
  | MapValue
  | ObjectValue
  | OpaqueValue

/** A 64-bit signed integer: a number while it is a safe integer, else a bigint. Never a bigint that would fit a number: use `int()`. */
export type CelInt = number | bigint

/** Why an evaluation stopped. Thrown inside the engine, returned as a value by Program.evaluate; no stack, as it is no bug. */
export class EvaluationError {
  readonly message: string
  /** Errors that && and || may not absorb: the budget is used up. */
  readonly fatal: boolean
  constructor(message: string, fatal = false) {
    this.message = message
    this.fatal = fatal
  }
}

export class Double {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** A 64-bit unsigned integer. */
export class Uint {
  readonly value: bigint
  constructor(value: bigint) {
    this.value = value
  }
}

/** A moment, as seconds since the Unix epoch and nanoseconds from 0 to 999,999,999. */
export class Timestamp {
  readonly seconds: number
  readonly nanos: number
  constructor(seconds: number, nanos: number) {
    this.seconds = seconds
    this.nanos = nanos
  }
}

/** A span of time in nanoseconds, a 64-bit signed integer as in Go. */
export class Duration {
  readonly nanos: bigint
  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

export class TypeValue {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

export class Optional {
  static readonly none = new Optional(undefined)
  readonly value: Value | undefined
  constructor(value: Value | undefined) {
    this.value = value
  }
}

export abstract class ListValue {
  abstract readonly size: number
  /** The item at an index from 0 to size-1; the caller checks the bounds. */
  abstract at(index: number): Value
  /** How + joins another list to this one; lists with merge semantics override it. */
  concat(other: ListValue): ListValue {
    return new ConcatenatedList(this, other)
  }
  /** The list's own rule of equality (set and map lists compare without order); undefined means item by item. */
  equals?(other: ListValue): boolean
}

/** A list of ready values. */
export class ArrayList extends ListValue {
  readonly items: readonly Value[]
  constructor(items: readonly Value[]) {
    super()
    this.items = items
  }
  get size(): number {
    return this.items.length
  }
  at(index: number): Value {
    return this.items[index]!
  }
}

/** Two lists, one after the other, without copying either. */
class ConcatenatedList extends ListValue {
  readonly #first: ListValue
  readonly #second: ListValue
  readonly size: number
  constructor(first: ListValue, second: ListValue) {
    super()
    this.#first = first
    this.#second = second
    this.size = first.size + second.size
  }
  at(index: number): Value {
    const offset = this.#first.size
    return index < offset ? this.#first.at(index) : this.#second.at(index - offset)
  }
}

export abstract class MapValue {
  abstract readonly size: number
  /** The value of a key, or undefined when absent. Numeric keys are found across int, uint and double. */
  abstract get(key: Value): Value | undefined
  /** The keys in the order of the data. */
  abstract keys(): Iterable<Value>
  has(key: Value): boolean {
    return this.get(key) !== undefined
  }
  /** The map's own rule of equality; undefined means key by key. */
  equals?(other: MapValue): boolean
}

/** The key under which a map files a value: numbers that are equal in CEL share one; undefined for what no map can hold as a key. */
export function mapKey(key: Value): string | undefined {
  switch (typeof key) {
    case 'string':
      return `s${key}`
    case 'number':
    case 'bigint':
      return `n${key}`
    case 'boolean':
      return `b${key}`
    default:
      if (key instanceof Uint) return `n${key.value}`
      return key instanceof Double && Number.isInteger(key.value) ? `n${BigInt(key.value)}` : undefined
  }
}

/** A map of ready values. Build it with `set`; not changed once an expression has seen it. */
export class HashMap extends MapValue {
  readonly #entries = new Map<string, { key: Value; value: Value }>()
  get size(): number {
    return this.#entries.size
  }
  get(key: Value): Value | undefined {
    const name = mapKey(key)
    return name === undefined ? undefined : this.#entries.get(name)?.value
  }
  *keys(): Iterable<Value> {
    for (const { key } of this.#entries.values()) yield key
  }
  set(key: Value, value: Value): void {
    const name = mapKey(key)
    if (name === undefined) throw new EvaluationError(`unsupported key type: ${typeNameOf(key)}`)
    this.#entries.set(name, { key, value })
  }
}

/** A value with declared fields. */
export abstract class ObjectValue {
  abstract readonly typeName: string
  /** The field's value, or undefined when it is not set. */
  abstract get(field: string): Value | undefined
  /** The names of the fields that are set. */
  abstract fieldNames(): Iterable<string>
}

/** An object that an expression has made. */
export class ConstructedObject extends ObjectValue {
  readonly typeName: string
  readonly #fields: ReadonlyMap<string, Value>
  constructor(typeName: string, fields: ReadonlyMap<string, Value>) {
    super()
    this.typeName = typeName
    this.#fields = fields
  }
  get(field: string): Value | undefined {
    return this.#fields.get(field)
  }
  fieldNames(): Iterable<string> {
    return this.#fields.keys()
  }
}

/** A value whose inside only its library knows, such as a quantity or an IP address. */
export abstract class OpaqueValue {
  abstract readonly typeName: string
  /** Equality with a value of the same type. */
  abstract equals(other: OpaqueValue): boolean
  /** What `size` counts for cost accounting, where upstream gives it one. */
  readonly costSize?: number
}

export const minInt = -(2n ** 63n)
export const maxInt = 2n ** 63n - 1n
export const maxUint = 2n ** 64n - 1n

/** The canonical int of a bigint. @throws EvaluationError beyond 64 bits. */
export function int(value: bigint): CelInt {
  if (value >= -9007199254740991n && value <= 9007199254740991n) return Number(value)
  if (value < minInt || value > maxInt) throw new EvaluationError('integer overflow')
  return value
}

export const isInt = (value: Value): value is CelInt => typeof value === 'number' || typeof value === 'bigint'

/** The run-time type's name, as `type(value)` gives it. */
export function typeNameOf(value: Value): string {
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return 'int'
    case 'string':
      return 'string'
    case 'boolean':
      return 'bool'
    default:
      break
  }
  if (value === null) return 'null_type'
  if (value instanceof ListValue) return 'list'
  if (value instanceof MapValue) return 'map'
  if (value instanceof ObjectValue || value instanceof OpaqueValue) return value.typeName
  if (value instanceof Double) return 'double'
  if (value instanceof Uint) return 'uint'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp'
  if (value instanceof Duration) return 'google.protobuf.Duration'
  if (value instanceof Optional) return 'optional_type'
  return 'type'
}

/** Whether a value may be passed where a type is declared, judged by its outermost shape. */
export function hasType(value: Value, type: CelType): boolean {
  switch (type.kind) {
    case 'dyn':
    case 'error':
    case 'parameter':
      return true
    case 'wrapper':
      return value === null || hasType(value, type.wrapped)
    case 'int':
      return typeof value === 'number' || typeof value === 'bigint'
    case 'string':
      return typeof value === 'string'
    case 'bool':
      return typeof value === 'boolean'
    case 'null':
      return value === null
    case 'list':
      return value instanceof ListValue
    case 'map':
      return value instanceof MapValue
    case 'double':
      return value instanceof Double
    case 'uint':
      return value instanceof Uint
    case 'bytes':
      return value instanceof Uint8Array
    case 'timestamp':
      return value instanceof Timestamp
    case 'duration':
      return value instanceof Duration
    case 'type':
      return value instanceof TypeValue
    case 'object':
      // Data of an object type is a map at run time: the schema, not the value, knows the type.
      return value instanceof MapValue || ((value instanceof ObjectValue || value instanceof OpaqueValue) && value.typeName === type.name)
    case 'opaque':
      if (type.name === 'optional_type') return value instanceof Optional
      return value instanceof OpaqueValue && value.typeName === type.name
  }
  throw new Error(`unknown kind of type: ${formatType(type)}`)
}
