/**
 * Compares two objects (L1): which fields were added or modified, and which removed. Runs on every write, so equal parts cost nothing
 * when the two objects share them. Upstream: structured-merge-diff/v6/typed/compare.go (v1.36).
 */
import { type JsonObject, jsonEqual } from '../machinery/objects.ts'
import type { Schema } from '../schema/schema.ts'
import { hasZero, zeroOf } from '../schema/zeros.ts'
import { type FieldSet, isEmpty, type MutableFieldSet, member } from './fieldSet.ts'
import { duplicatesOf, itemsByElement, memberSchema, ownedField, shapeOf } from './typed.ts'

export interface Comparison {
  /** Added or modified. */
  readonly changed: FieldSet
  readonly removed: FieldSet
}

/** Metadata that the server keeps. No manager owns it. */
export const serverMetadata: ReadonlySet<string> = new Set([
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
])

/** Compares two versions of an object; `old` undefined compares with an empty one. apiVersion, kind and server metadata do not count. */
export function compareObjects(old: JsonObject | undefined, updated: JsonObject, schema: Schema | undefined): Comparison {
  const changed: MutableFieldSet = {}
  const removed: MutableFieldSet = {}
  const before = old ?? {}
  for (const name of memberNames(before, updated)) {
    if (name === 'apiVersion' || name === 'kind') continue
    if (name !== 'metadata') {
      compareMember(before[name], updated[name], name, schema, changed, removed)
      continue
    }
    const child = memberSchema(schema, name)
    const metaChanged: MutableFieldSet = {}
    const metaRemoved: MutableFieldSet = {}
    const left = (before.metadata ?? {}) as JsonObject
    const right = (updated.metadata ?? {}) as JsonObject
    for (const key of memberNames(left, right)) {
      if (!serverMetadata.has(key)) compareMember(left[key], right[key], key, child, metaChanged, metaRemoved)
    }
    if (!isEmpty(metaChanged)) changed['f:metadata'] = metaChanged
    if (!isEmpty(metaRemoved)) removed['f:metadata'] = metaRemoved
  }
  return { changed, removed }
}

/** An applied configuration's set without the fields that the server keeps. */
export function withoutServerFields(set: FieldSet): FieldSet {
  const { 'f:apiVersion': _apiVersion, 'f:kind': _kind, 'f:metadata': metadata, ...rest } = set
  if (metadata === undefined) return rest
  const kept: MutableFieldSet = {}
  for (const element of Object.keys(metadata)) {
    if (element !== '.' && !serverMetadata.has(element.slice(2))) kept[element] = metadata[element] as FieldSet
  }
  return isEmpty(kept) ? rest : { ...rest, 'f:metadata': kept }
}

function memberNames(a: JsonObject, b: JsonObject): string[] {
  const names = Object.keys(a)
  for (const name of Object.keys(b)) if (!Object.hasOwn(a, name)) names.push(name)
  return names
}

function compareMember(old: unknown, updated: unknown, name: string, parent: Schema | undefined, changed: MutableFieldSet, removed: MutableFieldSet): void {
  if (old === updated) return
  const { element, schema } = ownedField(parent, name)
  const empty = isAbsent(old) || isAbsent(updated) ? emptyOf(parent, schema, name) : undefined
  if (empty === undefined) compareNode(old, updated, element, schema, changed, removed)
  else compareNode(old ?? empty, updated ?? empty, element, schema, changed, removed)
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

/**
 * Upstream compares Go values: scalars and structs that are no pointers, and lists and maps that are never omitted, are there, empty, as soon
 * as their parent is. So adding one is only adding its content. Undefined for fields that may be absent.
 */
function emptyOf(parent: Schema | undefined, schema: Schema | undefined, name: string): unknown {
  if (schema === undefined || parent?.fields?.get(name)?.alwaysPresent !== true) return undefined
  if (schema.type === 'array') return shapeOf([], schema) === 'leaf' ? null : []
  if (schema.type === 'object') return {}
  return hasZero(schema) ? zeroOf(schema) : null
}

function compareNode(old: unknown, updated: unknown, element: string, schema: Schema | undefined, changed: MutableFieldSet, removed: MutableFieldSet): void {
  if (old === updated) return
  if (old === undefined) {
    changed[element] = everything(updated, schema)
    return
  }
  if (updated === undefined) {
    removed[element] = everything(old, schema)
    return
  }
  const shape = shapeOf(updated, schema)
  if (shape !== shapeOf(old, schema)) {
    compareShapes(old, updated, element, schema, changed, removed)
    return
  }
  if (shape === 'leaf') {
    if (!jsonEqual(old, updated)) changed[element] = member
    return
  }
  const innerChanged: MutableFieldSet = {}
  const innerRemoved: MutableFieldSet = {}
  if (shape === 'members') compareMembers(old as JsonObject, updated as JsonObject, schema, innerChanged, innerRemoved)
  else compareItems(old as unknown[], updated as unknown[], schema, innerChanged, innerRemoved)
  if (!isEmpty(innerChanged)) changed[element] = innerChanged
  if (!isEmpty(innerRemoved)) removed[element] = innerRemoved
}

/** A value changed its shape: its old members are removed, its new ones changed, and so is the value itself, unless one of the two is null. */
function compareShapes(old: unknown, updated: unknown, element: string, schema: Schema | undefined, changed: MutableFieldSet, removed: MutableFieldSet): void {
  const { '.': _before, ...gone } = everything(old, schema)
  const { '.': _after, ...come } = everything(updated, schema)
  const fillsNull = (old === null || updated === null) && !(isEmpty(gone) && isEmpty(come))
  if (!fillsNull) changed[element] = isEmpty(come) ? member : { '.': member, ...come }
  else if (!isEmpty(come)) changed[element] = come
  if (!isEmpty(gone)) removed[element] = gone
}

function compareMembers(old: JsonObject, updated: JsonObject, schema: Schema | undefined, changed: MutableFieldSet, removed: MutableFieldSet): void {
  for (const name of memberNames(old, updated)) compareMember(old[name], updated[name], name, schema, changed, removed)
}

function compareItems(
  old: readonly unknown[],
  updated: readonly unknown[],
  schema: Schema | undefined,
  changed: MutableFieldSet,
  removed: MutableFieldSet,
): void {
  // Most lists of a changed object have not changed: to see that is cheaper than to name their items.
  if (jsonEqual(old, updated)) return
  const before = itemsByElement(old, schema)
  const after = itemsByElement(updated, schema)
  const several = { before: duplicatesOf(old, before, schema), after: duplicatesOf(updated, after, schema) }
  if (several.before || several.after) {
    compareDuplicates({ several, before, after, schema }, changed, removed)
  }
  before.forEach((item, element) => {
    if (several.before?.has(element) || several.after?.has(element)) return
    compareNode(item, after.get(element), element, schema?.element, changed, removed)
  })
  after.forEach((item, element) => {
    if (!before.has(element) && !several.after?.has(element)) changed[element] = everything(item, schema?.element)
  })
}

/** A list before and after a change: single items by element, and groups of items that share one. */
interface ChangedList {
  readonly several: { readonly before: Groups; readonly after: Groups }
  readonly before: ReadonlyMap<string, unknown>
  readonly after: ReadonlyMap<string, unknown>
  readonly schema: Schema | undefined
}

type Groups = ReadonlyMap<string, unknown[]> | undefined

/** Items that share an element are compared as one: a manager that creates or ends such a group changes the whole group. */
function compareDuplicates({ several, before, after, schema }: ChangedList, changed: MutableFieldSet, removed: MutableFieldSet): void {
  for (const element of new Set([...(several.before?.keys() ?? []), ...(several.after?.keys() ?? [])])) {
    const old = several.before?.get(element)
    const updated = several.after?.get(element)
    if (old && updated) {
      if (!jsonEqual(old, updated)) changed[element] = member
    } else if (old) {
      if (after.has(element)) changed[element] = everything(after.get(element), schema?.element)
      removed[element] = member
    } else {
      if (before.has(element)) removed[element] = everything(before.get(element), schema?.element)
      changed[element] = member
    }
  }
}

/** A part that came or went whole: itself and all below it. */
function everything(value: unknown, schema: Schema | undefined): FieldSet {
  const shape = shapeOf(value, schema)
  if (shape === 'leaf') return member
  const set: MutableFieldSet = { '.': member }
  let size = 0
  if (shape === 'members') {
    for (const name of Object.keys(value as JsonObject)) {
      const child = (value as JsonObject)[name]
      if (child === undefined) continue
      const field = ownedField(schema, name)
      set[field.element] = everything(child, field.schema)
      size++
    }
  } else {
    const items = itemsByElement(value as unknown[], schema)
    const several = duplicatesOf(value as unknown[], items, schema)
    items.forEach((item, element) => {
      set[element] = several?.has(element) ? member : everything(item, schema?.element)
      size++
    })
  }
  return size === 0 ? member : set
}
