/**
 * Strategic merge patch (L1): a merge patch that knows from the schema which lists merge, by which key, and that obeys directives.
 * Directives: `$patch` (replace, delete), `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`, `$retainKeys`.
 * Upstream: apimachinery/pkg/util/strategicpatch/patch.go (v1.36).
 */
import { deepCopy } from '#base/frozen'
import { getOwn, goPrint, isObject, type JsonObject, jsonEqual, jsonKey, setOwn } from '../machinery/objects.ts'
import { badRequest, StatusError } from '../machinery/status.ts'
import type { Schema } from '../schema/schema.ts'

const patchDirective = '$patch'
const retainKeysDirective = '$retainKeys'
const deletePrefix = '$deleteFromPrimitiveList/'
const orderPrefix = '$setElementOrder/'

/**
 * Applies a strategic merge patch and returns a new document; `document` stays as it is.
 * @throws StatusError BadRequest for malformed directives; 500 with upstream's text when a list item lacks its merge key.
 */
export function applyStrategicMergePatch(document: unknown, patch: unknown, schema: Schema): unknown {
  if (!isObject(patch) || !isObject(document)) throw badRequest('invalid JSON document')
  return mergeObject(deepCopy(document), patch, schema)
}

/** Upstream answers these with a plain error: 500 without a reason. */
function fault(message: string): StatusError {
  return new StatusError('', message)
}

function mergeObject(original: JsonObject, patch: JsonObject, schema: Schema | undefined): JsonObject {
  const directive = getOwn(patch, patchDirective)
  if (directive !== undefined) {
    if (directive === 'replace') return membersWithoutDirectives(patch)
    if (directive === 'delete') return {}
    throw fault(`unknown patch type: ${goPrint(directive)} in map: ${goPrint(patch)}`)
  }
  retainKeys(original, patch)
  for (const key of Object.keys(patch)) {
    if (key === patchDirective || key === retainKeysDirective || key.startsWith(orderPrefix)) continue
    if (key.startsWith(deletePrefix)) {
      deleteFromPrimitiveList(original, key.slice(deletePrefix.length), patch[key])
      continue
    }
    mergeMember(original, key, patch[key], memberSchema(schema, key), getOwn(patch, orderPrefix + key))
  }
  for (const key of Object.keys(patch)) {
    if (key.startsWith(orderPrefix)) orderOnly(original, patch, key.slice(orderPrefix.length), patch[key], memberSchema(schema, key.slice(orderPrefix.length)))
  }
  return original
}

function memberSchema(schema: Schema | undefined, key: string): Schema | undefined {
  return schema?.type === 'map' ? schema.element : schema?.fields?.get(key)?.schema
}

function retainKeys(original: JsonObject, patch: JsonObject): void {
  const retained = getOwn(patch, retainKeysDirective)
  if (retained === undefined) return
  if (!Array.isArray(retained)) throw badRequest('invalid patch format of retainKeys')
  const kept = new Set<unknown>(retained)
  for (const key of Object.keys(patch)) {
    if (!key.startsWith('$') && patch[key] !== null && !kept.has(key)) throw badRequest('invalid patch format of retainKeys')
  }
  for (const key of Object.keys(original)) {
    if (!kept.has(key)) delete original[key]
  }
}

function deleteFromPrimitiveList(original: JsonObject, key: string, items: unknown): void {
  if (!Array.isArray(items)) throw badRequest('invalid patch format of primitive list')
  const list = getOwn(original, key)
  if (!Array.isArray(list)) return
  const doomed = new Set(items.map(jsonKey))
  setOwn(
    original,
    key,
    list.filter((item) => !doomed.has(jsonKey(item))),
  )
}

function mergeMember(original: JsonObject, key: string, value: unknown, schema: Schema | undefined, order: unknown): void {
  if (value === null) {
    delete original[key]
    return
  }
  const current = getOwn(original, key)
  if (isObject(value) && isObject(current) && !replaces(schema)) {
    setOwn(original, key, mergeObject(current, value, schema))
  } else if (Array.isArray(value) && Array.isArray(current) && merges(schema)) {
    setOwn(original, key, mergeList(current, value, schema, order))
  } else {
    const fresh = withoutDirectives(value)
    if (fresh === undefined) delete original[key]
    else setOwn(original, key, Array.isArray(fresh) && merges(schema) && order !== undefined ? reorder(fresh, [], order, schema) : fresh)
  }
}

function merges(schema: Schema | undefined): boolean {
  return schema?.patchStrategies?.includes('merge') ?? false
}

function replaces(schema: Schema | undefined): boolean {
  return schema?.patchStrategies?.includes('replace') ?? false
}

/** What a patch value becomes where there is nothing to merge with: nulls vanish, and whatever is itself a `$patch` directive. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isObject(value)) return value
  return Object.hasOwn(value, patchDirective) ? undefined : membersWithoutDirectives(value)
}

function membersWithoutDirectives(value: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const key of Object.keys(value)) {
    if (key === patchDirective || key === retainKeysDirective || key.startsWith(deletePrefix) || key.startsWith(orderPrefix) || value[key] === null) continue
    const member = withoutDirectives(value[key])
    if (member !== undefined) setOwn(result, key, member)
  }
  return result
}

function mergeList(current: readonly unknown[], patch: readonly unknown[], schema: Schema | undefined, order: unknown): unknown[] {
  if (order !== undefined) checkOrder(patch, order, schema)
  const mergeKey = schema?.patchMergeKey
  const sample = current[0] ?? patch[0]
  if (!isObject(sample) || mergeKey === undefined) {
    const merged = [...current]
    const known = new Set(merged.map(jsonKey))
    for (const item of patch) {
      const key = jsonKey(item)
      if (known.has(key)) continue
      known.add(key)
      merged.push(deepCopy(item))
    }
    const ordered = reorder(merged, current, patch, schema)
    return order === undefined ? ordered : reorder(ordered, current, order, schema)
  }
  const { left, items } = applyItemDirectives(current, patch, mergeKey)
  const merged = mergeItems(left, items, mergeKey, schema)
  const ordered = reorder(merged, left, items, schema)
  // Upstream remembers the live order in memory that deletions and additions overwrite: what it sees is the merged list, no longer than
  // the old one.
  return order === undefined ? ordered : reorder(ordered, left.length === current.length ? current : merged.slice(0, current.length), order, schema)
}

/** Carries out the `$patch` items of a list. @returns the current items that remain, and the ordinary items of the patch */
function applyItemDirectives(current: readonly unknown[], patch: readonly unknown[], mergeKey: string): { left: unknown[]; items: JsonObject[] } {
  const doomed = new Set<unknown>()
  const items: JsonObject[] = []
  let replace = false
  for (const item of patch) {
    if (!isObject(item)) throw fault(`list element types are not identical: ${goPrint([current, patch])}`)
    const directive = getOwn(item, patchDirective)
    if (directive === undefined) items.push(item)
    else if (directive === 'replace') replace = true
    else if (directive === 'delete') doomed.add(jsonKey(keyOf(item, mergeKey)))
    else if (directive === 'merge') throw fault('merging lists cannot yet be specified in the patch')
    else throw fault(`unknown patch type: ${goPrint(directive)} in map: ${goPrint(item)}`)
  }
  const left = current.filter((known) => !(isObject(known) && doomed.has(jsonKey(known[mergeKey]))))
  return replace ? { left: items.map(membersWithoutDirectives), items: [] } : { left, items }
}

function keyOf(item: JsonObject, mergeKey: string): unknown {
  const key = getOwn(item, mergeKey)
  if (key === undefined) throw fault(`map: ${goPrint(item)} does not contain declared merge key: ${mergeKey}`)
  return key
}

function mergeItems(left: readonly unknown[], items: readonly JsonObject[], mergeKey: string, schema: Schema | undefined): unknown[] {
  const merged = [...left]
  const places = new Map<unknown, number>()
  for (const [at, known] of merged.entries()) {
    const key = isObject(known) ? jsonKey(known[mergeKey]) : undefined
    if (key !== undefined && !places.has(key)) places.set(key, at)
  }
  for (const item of items) {
    const key = jsonKey(keyOf(item, mergeKey))
    const at = places.get(key)
    if (at !== undefined) merged[at] = mergeObject(merged[at] as JsonObject, item, schema?.element)
    else places.set(key, merged.push(membersWithoutDirectives(item)) - 1)
  }
  return merged
}

/** The patch's items must stand in the order that `$setElementOrder` gives. */
function checkOrder(patch: readonly unknown[], order: unknown, schema: Schema | undefined): void {
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list')
  if (order.length === 0) return
  const mergeKey = schema?.patchMergeKey
  const identity = (item: unknown): unknown => (mergeKey !== undefined && isObject(item) ? item[mergeKey] : item)
  const items = patch.filter((item) => !(isObject(item) && Object.hasOwn(item, patchDirective)))
  let next = 0
  for (const place of order) {
    if (next < items.length && jsonEqual(identity(items[next]), identity(place))) next++
  }
  if (next < items.length) throw fault(`The order in patch list:\n${goPrint(patch)}\n doesn't match $setElementOrder list:\n${goPrint(order)}\n`)
}

/** `$setElementOrder` without a patch for the list itself. */
function orderOnly(original: JsonObject, patch: JsonObject, key: string, order: unknown, schema: Schema | undefined): void {
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list')
  const list = getOwn(original, key)
  if (!Object.hasOwn(patch, key) && Array.isArray(list)) original[key] = reorder(list, list, order, schema)
}

/**
 * Brings `merged` into the client's order: that of `order`, which is the patch itself when it gives no other. Items that the order does
 * not name (the server's own) keep their place relative to the named ones as far as the list before tells.
 */
function reorder(merged: readonly unknown[], before: readonly unknown[], order: unknown, schema: Schema | undefined): unknown[] {
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list')
  const mergeKey = schema?.patchMergeKey
  const identity = (item: unknown): unknown => jsonKey(mergeKey !== undefined && isObject(item) ? item[mergeKey] : item)
  const placeInOrder = firstPlaces(order, identity)
  const placeBefore = firstPlaces(before, identity)
  const placed = merged.map((item) => {
    const key = identity(item)
    return { item, ordered: placeInOrder.get(key) ?? -1, before: placeBefore.get(key) ?? -1 }
  })
  const named = placed.filter(({ ordered }) => ordered >= 0).sort((a, b) => a.ordered - b.ordered)
  const own = placed.filter(({ ordered }) => ordered < 0).sort((a, b) => a.before - b.before)
  const result: unknown[] = []
  let next = 0
  for (const { item, before: at } of named) {
    for (let one = own[next]; one && one.before >= 0 && one.before < at; one = own[++next]) result.push(one.item)
    result.push(item)
  }
  return [...result, ...own.slice(next).map(({ item }) => item)]
}

function firstPlaces(list: readonly unknown[], identity: (item: unknown) => unknown): Map<unknown, number> {
  const places = new Map<unknown, number>()
  for (const [at, item] of list.entries()) {
    const key = identity(item)
    if (!places.has(key)) places.set(key, at)
  }
  return places
}
