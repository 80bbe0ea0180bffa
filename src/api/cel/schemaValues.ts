/**
 * Values of custom resources that follow more than JSON's rules (L1): objects with declared fields, and lists that are sets or maps,
 * which compare without order and merge when added. Upstream: apiserver/pkg/cel/common/valuesunstructured.go, maplist.go (v1.36).
 */

import { ownValue } from '#base/bareMap'
import { equal } from '#cel/equality'
import type { JsonConverter } from '#cel/json'
import { JsonList } from '#cel/json'
import { describe } from '#cel/text'
import type { Value } from '#cel/values'
import { ArrayList, ListValue, MapValue, mapKey } from '#cel/values'
import type { JSONSchemaProps } from '../gen/types/apiextensions.v1.ts'
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { jsonEqual } from '../machinery/objects.ts'

/** A declared field: its name in JSON and the function that wraps its value. */
interface ReadableField {
  readonly name: string
  readonly declaration: { readonly toValue: JsonConverter }
}

/** A JSON object, its fields by the names that expressions write. A field that is null counts as absent. */
export class DeclaredObject extends MapValue {
  readonly json: Readonly<Record<string, unknown>>
  readonly #fields: ReadonlyMap<string, ReadableField>

  constructor(json: Readonly<Record<string, unknown>>, fields: ReadonlyMap<string, ReadableField>) {
    super()
    this.json = json
    this.#fields = fields
  }
  get size(): number {
    return Object.keys(this.json).length
  }
  get(key: Value): Value | undefined {
    const field = typeof key === 'string' ? this.#fields.get(key) : undefined
    if (!field || !Object.hasOwn(this.json, field.name)) return undefined
    const value = this.json[field.name]
    return value === null || value === undefined ? undefined : field.declaration.toValue(value)
  }
  *keys(): Iterable<string> {
    for (const key of this.#fields.keys()) if (this.get(key) !== undefined) yield key
  }
  /** Fields that the schema does not declare compare as JSON. */
  override equals(other: MapValue): boolean {
    if (!(other instanceof DeclaredObject) || this.size !== other.size) return false
    for (const [key, { name }] of this.#fields) {
      const [a, b] = [this.get(key), other.get(key)]
      if (a === undefined || b === undefined ? a !== b : !equal(a, b)) return false
      if (Object.hasOwn(this.json, name) !== Object.hasOwn(other.json, name)) return false
    }
    const declared = new Set([...this.#fields.values()].map(({ name }) => name))
    return Object.keys(this.json).every((name) => declared.has(name) || jsonEqual(this.json[name], ownValue(other.json, name)))
  }
}

/** How arrays of a schema become lists. */
export function listOf(props: JSONSchemaProps, convert: JsonConverter): (items: readonly unknown[]) => ListValue {
  switch (props['x-kubernetes-list-type']) {
    case 'set':
      return (items) => new KeyedList(new JsonList(items, convert), (item) => mapKey(item) ?? describe(item), false)
    case 'map': {
      const keys = props['x-kubernetes-list-map-keys'] ?? []
      return (items) => new KeyedList(new JsonList(items, convert), (item) => keyOf(item, keys), true)
    }
    default:
      return (items) => new JsonList(items, convert)
  }
}

/** The key of an item of a map list, as one text. */
function keyOf(item: Value, keys: readonly string[]): string | undefined {
  if (item instanceof DeclaredObject) return stringifyExactly(keys.map((key) => ownValue(item.json, key) ?? null))
  return item instanceof MapValue ? JSON.stringify(keys.map((key) => mapKey(item.get(key) ?? null) ?? null)) : undefined
}

/** A list whose items have keys. Equality ignores order; addition keeps the places of the first list's items. */
class KeyedList extends ListValue {
  readonly #items: ListValue
  readonly #key: (item: Value) => string | undefined
  /** Whether an added item takes the place of one with the same key: yes for map lists; in sets both are the same. */
  readonly #replaces: boolean
  #byKey: Map<string | undefined, Value> | undefined

  constructor(items: ListValue, key: (item: Value) => string | undefined, replaces: boolean) {
    super()
    this.#items = items
    this.#key = key
    this.#replaces = replaces
  }
  get size(): number {
    return this.#items.size
  }
  at(index: number): Value {
    return this.#items.at(index)
  }
  #keyed(): Map<string | undefined, Value> {
    if (!this.#byKey) {
      this.#byKey = new Map()
      for (let i = 0; i < this.size; i++) this.#byKey.set(this.#key(this.at(i)), this.at(i))
    }
    return this.#byKey
  }
  override equals(other: ListValue): boolean {
    if (other.size !== this.size) return false
    const keyed = this.#keyed()
    for (let i = 0; i < other.size; i++) {
      const item = other.at(i)
      const mine = keyed.get(this.#key(item))
      if (mine === undefined || !equal(mine, item)) return false
    }
    return true
  }
  override concat(other: ListValue): ListValue {
    const merged = new Map(this.#keyed())
    for (let i = 0; i < other.size; i++) {
      const item = other.at(i)
      const key = this.#key(item)
      // A Map keeps the place of a key that is set again.
      if (this.#replaces || !merged.has(key)) merged.set(key, item)
    }
    return new KeyedList(new ArrayList([...merged.values()]), this.#key, this.#replaces)
  }
}
