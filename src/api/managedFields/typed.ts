/**
 * How the schema sees a value for ownership (L1): as one leaf, as named members, or as list items with an identity.
 * Without a schema (free-form parts of custom resources) maps are granular and lists atomic.
 * Upstream: structured-merge-diff/v6/typed (v1.36).
 */
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { isObject, type JsonObject } from '../machinery/objects.ts'
import { perSchema } from '../schema/perSchema.ts'
import type { Schema } from '../schema/schema.ts'
import { type FieldSet, type MutableFieldSet, member } from './fieldSet.ts'

export type Shape = 'leaf' | 'members' | 'items'

/** Undefined schema: free form. */
export function shapeOf(value: unknown, schema: Schema | undefined): Shape {
  if (typeof value !== 'object' || value === null) return 'leaf'
  if (schema === undefined || (schema.type === 'any' && schema.format === undefined)) return Array.isArray(value) ? 'leaf' : 'members'
  if (schema.type === 'array') return Array.isArray(value) && (schema.listType === 'map' || schema.listType === 'set') ? 'items' : 'leaf'
  if (schema.type !== 'object' && schema.type !== 'map') return 'leaf'
  return schema.mapType === 'atomic' || Array.isArray(value) ? 'leaf' : 'members'
}

export function memberSchema(schema: Schema | undefined, name: string): Schema | undefined {
  if (schema === undefined) return undefined
  return schema.type === 'map' ? schema.element : schema.fields?.get(name)?.schema
}

/** The names of both objects' members, the first one's in front. */
export function memberNames(a: JsonObject, b: JsonObject): string[] {
  const names = Object.keys(a)
  for (const name of Object.keys(b)) if (!Object.hasOwn(a, name)) names.push(name)
  return names
}

/** A field as ownership names and sees it. */
export interface OwnedField {
  readonly element: string
  readonly schema: Schema | undefined
}

const fieldsOf = perSchema(({ fields }) => new Map([...(fields ?? [])].map(([name, { schema }]) => [name, { element: `f:${name}`, schema }])))

/** The member of an object or a map; the names of declared fields are put together once. */
export function ownedField(schema: Schema | undefined, name: string): OwnedField {
  return (schema?.type === 'object' ? fieldsOf(schema).get(name) : undefined) ?? { element: `f:${name}`, schema: memberSchema(schema, name) }
}

/** True for the keys of maps, false for declared fields: entries of a map are owned themselves, fields only through their content. */
function isEntry(schema: Schema | undefined, name: string): boolean {
  return !(schema?.type === 'object' && schema.fields?.has(name))
}

/** The path element of a list item: `k:{"name":"x"}` for lists of type map, `v:"x"` for sets. */
export function itemElement(item: unknown, index: number, schema: Schema | undefined): string {
  if (schema?.listType === 'set') return `v:${stringifyExactly(item)}`
  const keys = schema?.listMapKeys
  if (keys === undefined || !isObject(item)) return `i:${index}`
  if (keys.length === 1) {
    const name = keys[0] as string
    const value = keyValue(item, name, schema)
    return value === undefined ? `i:${index}` : `k:{${JSON.stringify(name)}:${stringifyExactly(value)}}`
  }
  const parts: string[] = []
  for (const name of [...keys].sort()) {
    const value = keyValue(item, name, schema)
    if (value !== undefined) parts.push(`${JSON.stringify(name)}:${stringifyExactly(value)}`)
  }
  return parts.length === 0 ? `i:${index}` : `k:{${parts.join(',')}}`
}

/** A key that is absent counts with its default: ports are TCP. */
function keyValue(item: JsonObject, name: string, schema: Schema | undefined): unknown {
  return item[name] ?? schema?.element?.fields?.get(name)?.default
}

/** The items of a list by their element, in order; of duplicates the first counts. */
export function itemsByElement(list: readonly unknown[], schema: Schema | undefined): Map<string, unknown> {
  const items = new Map<string, unknown>()
  for (let index = 0; index < list.length; index++) {
    const element = itemElement(list[index], index, schema)
    if (!items.has(element)) items.set(element, list[index])
  }
  return items
}

/**
 * The items of the elements that several items share (environment variables often do), by element: together they are one leaf.
 * `items` is the same list's {@link itemsByElement}. Undefined in the usual case, that each has its own.
 */
export function duplicatesOf(list: readonly unknown[], items: ReadonlyMap<string, unknown>, schema: Schema | undefined): Map<string, unknown[]> | undefined {
  if (items.size === list.length) return undefined
  const groups = new Map<string, unknown[]>()
  for (const [index, item] of list.entries()) {
    const element = itemElement(item, index, schema)
    const group = groups.get(element)
    if (group) group.push(item)
    else groups.set(element, [item])
  }
  for (const [element, group] of groups) if (group.length === 1) groups.delete(element)
  return groups
}

/** What an applied configuration owns: its leaves, its list items, its map entries and its empty maps. */
export function fieldSetOf(value: unknown, schema: Schema | undefined): FieldSet {
  const set: MutableFieldSet = {}
  addOwned(set, value, schema)
  return set
}

/** Adds what is owned below a list or an object to the set of it. @returns whether that is anything */
function addOwned(set: MutableFieldSet, value: unknown, schema: Schema | undefined): boolean {
  if (shapeOf(value, schema) === 'items') {
    const items = itemsByElement(value as unknown[], schema)
    const several = duplicatesOf(value as unknown[], items, schema)
    items.forEach((item, element) => {
      set[element] = several?.has(element) ? member : entryNode(item, schema?.element)
    })
    return items.size > 0
  }
  const object = value as JsonObject
  let isOwned = false
  for (const name of Object.keys(object)) {
    const child = object[name]
    if (child === undefined) continue
    const node = isEntry(schema, name) ? entryNode(child, memberSchema(schema, name)) : fieldNode(child, memberSchema(schema, name))
    if (node === undefined) continue
    set[`f:${name}`] = node
    isOwned = true
  }
  return isOwned
}

/** A map's entry or a list's item is owned itself. */
function entryNode(value: unknown, schema: Schema | undefined): FieldSet {
  if (shapeOf(value, schema) === 'leaf') return member
  const set: MutableFieldSet = { '.': member }
  return addOwned(set, value, schema) ? set : member
}

/** A field is owned through its content. Undefined: owns nothing, as an empty list that is not atomic. An empty set would mean the node itself. */
function fieldNode(value: unknown, schema: Schema | undefined): FieldSet | undefined {
  const shape = shapeOf(value, schema)
  if (shape === 'leaf') return member
  const set: MutableFieldSet = {}
  if (addOwned(set, value, schema)) return set
  return shape === 'members' && Object.keys(value as JsonObject).length === 0 ? member : undefined
}
