/**
 * JSON as CEL values, and back (L1, pure). Lists and maps are wrapped, never copied: an item is converted when it is read.
 * How an item is converted is the wrapper's parameter; without a schema, whole numbers are ints and other numbers doubles.
 */
import { formatDuration, formatTimestamp } from './time.ts'
import type { Value } from './values.ts'
import { Double, Duration, EvaluationError, int, ListValue, MapValue, ObjectValue, Optional, Timestamp, typeNameOf, Uint } from './values.ts'

export type JsonConverter = (json: unknown) => Value

/** A JSON array. */
export class JsonList extends ListValue {
  readonly items: readonly unknown[]
  readonly #convert: JsonConverter

  constructor(items: readonly unknown[], convert: JsonConverter) {
    super()
    this.items = items
    this.#convert = convert
  }
  get size(): number {
    return this.items.length
  }
  at(index: number): Value {
    return this.#convert(this.items[index])
  }
}

/** A JSON object with values of one kind. */
export class JsonMap extends MapValue {
  readonly entries: Readonly<Record<string, unknown>>
  readonly #convert: JsonConverter

  constructor(entries: Readonly<Record<string, unknown>>, convert: JsonConverter) {
    super()
    this.entries = entries
    this.#convert = convert
  }
  get size(): number {
    return Object.keys(this.entries).length
  }
  get(key: Value): Value | undefined {
    return typeof key === 'string' && Object.hasOwn(this.entries, key) ? this.#convert(this.entries[key]) : undefined
  }
  override has(key: Value): boolean {
    return typeof key === 'string' && Object.hasOwn(this.entries, key)
  }
  keys(): Iterable<string> {
    return Object.keys(this.entries)
  }
}

/** A whole number as int. The parser makes bigints of those that doubles do not hold. */
export const jsonInt = (value: number | bigint): Value => (typeof value === 'number' && Number.isSafeInteger(value) ? value : int(BigInt(value)))

/** JSON of any shape. */
export function dynamicValue(json: unknown): Value {
  switch (typeof json) {
    case 'string':
    case 'boolean':
      return json
    case 'number':
      // An integer beyond these is a bigint, so this one was written as a fraction or with an exponent.
      return Number.isSafeInteger(json) ? json : new Double(json)
    case 'bigint':
      return int(json)
    default:
      break
  }
  if (json === null || json === undefined) return null
  if (Array.isArray(json)) return new JsonList(json, dynamicValue)
  return new JsonMap(json as Record<string, unknown>, dynamicValue)
}

/** A value as JSON: bytes in base64, times and durations as text. @throws EvaluationError for what JSON cannot hold. */
export function toJson(value: Value): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number' || typeof value === 'bigint') return value
  if (value instanceof Double) return value.value
  if (value instanceof Uint) return Number(value.value)
  if (value instanceof Uint8Array) return base64(value)
  if (value instanceof Timestamp) return formatTimestamp(value)
  if (value instanceof Duration) return formatDuration(value)
  if (value instanceof ListValue) return Array.from({ length: value.size }, (_, i) => toJson(value.at(i)))
  if (value instanceof MapValue) return Object.fromEntries([...value.keys()].map((key) => [String(toJson(key)), toJson(value.get(key)!)]))
  if (value instanceof ObjectValue) return Object.fromEntries([...value.fieldNames()].map((name) => [name, toJson(value.get(name)!)]))
  if (value instanceof Optional && value.value !== undefined) return toJson(value.value)
  throw new EvaluationError(`type ${typeNameOf(value)} has no JSON form`)
}

const base64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
