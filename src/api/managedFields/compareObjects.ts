/**
 * Compares two objects (L1): which fields were added or modified, and which removed. Runs on every write, so equal parts cost nothing
 * when the two objects share them. Upstream: structured-merge-diff/v6/typed/compare.go (v1.36).
 */

import type { Steps } from '#base/steps'
import { type JsonObject, jsonEqual } from '../machinery/objects.ts'
import type { Schema } from '../schema/schema.ts'
import { hasZero, zeroOf } from '../schema/zeros.ts'
import { type FieldSet, isEmpty, type MutableFieldSet, member } from './fieldSet.ts'
import { duplicatesOf, itemsByElement, memberNames, memberSchema, ownedField, shapeOf } from './typed.ts'

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

/** Work that completes a comparison: the fields of what came or went whole may be as many as a request can name. */
type Later = (() => void)[]

/** Fields that are named before others get a turn. */
const fieldsPerTurn = 10_000

/** The fields of one object that differ, while they are found. */
interface Differences {
  readonly changed: MutableFieldSet
  readonly removed: MutableFieldSet
  readonly later: Later
}

/** Compares two versions of an object; `old` undefined compares with an empty one. apiVersion, kind and server metadata do not count. */
export function compareObjects(old: JsonObject | undefined, updated: JsonObject, schema: Schema | undefined): Comparison {
  const later: Later = []
  const comparison = compare(old, updated, schema, later)
  for (const complete of later) complete()
  return comparison
}

/** {@link compareObjects}, with pauses. */
export function* comparingObjects(old: JsonObject | undefined, updated: JsonObject, schema: Schema | undefined): Steps<Comparison> {
  const later: Later = []
  const comparison = compare(old, updated, schema, later)
  for (const complete of later) {
    yield
    complete()
  }
  return comparison
}

/** The result is complete when the work that was added to `later` is done. */
function compare(old: JsonObject | undefined, updated: JsonObject, schema: Schema | undefined, later: Later): Comparison {
  const found = noDifferences(later)
  const before = old ?? {}
  for (const name of memberNames(before, updated)) {
    if (name === 'apiVersion' || name === 'kind') continue
    if (name !== 'metadata') {
      compareMember(before[name], updated[name], name, schema, found)
      continue
    }
    const child = memberSchema(schema, name)
    const ofMetadata = noDifferences(later)
    const left = (before.metadata ?? {}) as JsonObject
    const right = (updated.metadata ?? {}) as JsonObject
    for (const key of memberNames(left, right)) {
      if (!serverMetadata.has(key)) compareMember(left[key], right[key], key, child, ofMetadata)
    }
    add(found, 'f:metadata', ofMetadata)
  }
  return found
}

const noDifferences = (later: Later): Differences => ({ changed: {}, removed: {}, later })

function add(found: Differences, element: string, { changed, removed }: Differences): void {
  if (!isEmpty(changed)) found.changed[element] = changed
  if (!isEmpty(removed)) found.removed[element] = removed
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

function compareMember(old: unknown, updated: unknown, name: string, parent: Schema | undefined, found: Differences): void {
  if (old === updated) return
  const { element, schema } = ownedField(parent, name)
  const empty = isAbsent(old) || isAbsent(updated) ? emptyOf(parent, schema, name) : undefined
  if (empty === undefined) compareNode(old, updated, element, schema, found)
  else compareNode(old ?? empty, updated ?? empty, element, schema, found)
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

function compareNode(old: unknown, updated: unknown, element: string, schema: Schema | undefined, found: Differences): void {
  if (old === updated) return
  if (old === undefined) {
    found.changed[element] = everything(updated, schema, found.later)
    return
  }
  if (updated === undefined) {
    found.removed[element] = everything(old, schema, found.later)
    return
  }
  const shape = shapeOf(updated, schema)
  if (shape !== shapeOf(old, schema)) {
    compareShapes(old, updated, element, schema, found)
    return
  }
  if (shape === 'leaf') {
    if (!jsonEqual(old, updated)) found.changed[element] = member
    return
  }
  const inner = noDifferences(found.later)
  if (shape === 'members') compareMembers(old as JsonObject, updated as JsonObject, schema, inner)
  else compareItems(old as unknown[], updated as unknown[], schema, inner)
  add(found, element, inner)
}

/** A value changed its shape: its old members are removed, its new ones changed, and so is the value itself, unless one of the two is null. */
function compareShapes(old: unknown, updated: unknown, element: string, schema: Schema | undefined, { changed, removed }: Differences): void {
  const { '.': _before, ...gone } = everything(old, schema)
  const { '.': _after, ...come } = everything(updated, schema)
  const fillsNull = (old === null || updated === null) && !(isEmpty(gone) && isEmpty(come))
  if (!fillsNull) changed[element] = isEmpty(come) ? member : { '.': member, ...come }
  else if (!isEmpty(come)) changed[element] = come
  if (!isEmpty(gone)) removed[element] = gone
}

function compareMembers(old: JsonObject, updated: JsonObject, schema: Schema | undefined, found: Differences): void {
  for (const name of memberNames(old, updated)) compareMember(old[name], updated[name], name, schema, found)
}

function compareItems(old: readonly unknown[], updated: readonly unknown[], schema: Schema | undefined, found: Differences): void {
  // Most lists of a changed object have not changed: to see that is cheaper than to name their items.
  if (jsonEqual(old, updated)) return
  const before = itemsByElement(old, schema)
  const after = itemsByElement(updated, schema)
  const several = { before: duplicatesOf(old, before, schema), after: duplicatesOf(updated, after, schema) }
  if (several.before || several.after) compareDuplicates({ several, before, after, schema }, found)
  before.forEach((item, element) => {
    if (several.before?.has(element) || several.after?.has(element)) return
    compareNode(item, after.get(element), element, schema?.element, found)
  })
  after.forEach((item, element) => {
    if (!before.has(element) && !several.after?.has(element)) found.changed[element] = everything(item, schema?.element, found.later)
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
function compareDuplicates({ several, before, after, schema }: ChangedList, { changed, removed }: Differences): void {
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

/**
 * A part that came or went whole: itself and all below it.
 * @param later takes the naming of many members or items; absent: the set is complete at once
 */
function everything(value: unknown, schema: Schema | undefined, later?: Later): FieldSet {
  const shape = shapeOf(value, schema)
  if (shape === 'leaf') return member
  const set: MutableFieldSet = { '.': member }
  return shape === 'members' ? addMembers(set, value as JsonObject, schema, later) : addItems(set, value as unknown[], schema, later)
}

function addMembers(set: MutableFieldSet, object: JsonObject, schema: Schema | undefined, later: Later | undefined): FieldSet {
  const names = Object.keys(object)
  let size = 0
  const addMember = (name: string) => {
    const child = object[name]
    if (child === undefined) return
    const field = ownedField(schema, name)
    set[field.element] = everything(child, field.schema, later)
    size++
  }
  if (later !== undefined && names.length > fieldsPerTurn) {
    inParts(names, addMember, later)
    return set
  }
  for (const name of names) addMember(name)
  return size === 0 ? member : set
}

function addItems(set: MutableFieldSet, list: readonly unknown[], schema: Schema | undefined, later: Later | undefined): FieldSet {
  const items = itemsByElement(list, schema)
  const several = duplicatesOf(list, items, schema)
  const addItem = ([element, item]: readonly [string, unknown]) => {
    set[element] = several?.has(element) ? member : everything(item, schema?.element, later)
  }
  if (later !== undefined && items.size > fieldsPerTurn) inParts([...items], addItem, later)
  else for (const entry of items) addItem(entry)
  return items.size === 0 ? member : set
}

function inParts<T>(all: readonly T[], visit: (one: T) => void, later: Later): void {
  for (let at = 0; at < all.length; at += fieldsPerTurn) later.push(() => all.slice(at, at + fieldsPerTurn).forEach(visit))
}
