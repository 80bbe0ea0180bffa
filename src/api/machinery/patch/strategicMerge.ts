/**
 * Strategic merge patch (L1): a merge patch that knows from the schema which lists merge, by which key, and that obeys directives.
 * Directives: `$patch` (replace, delete, merge), `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`, `$retainKeys`.
 * Upstream: apimachinery/pkg/util/strategicpatch/patch.go (v1.36).
 */
import { deepCopy } from '#base/frozen'
import type { Schema } from '../../schema/schema.ts'
import { badRequest, StatusError } from '../status.ts'
import { getOwn, goPrint, isObject, type JsonObject, jsonEqual, setOwn } from './objects.ts'

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
    if (directive === 'replace') return withoutDirectives(patch) as JsonObject
    if (directive === 'delete') return {}
    if (directive !== 'merge') throw fault(`unknown patch type: ${goPrint(directive)} in map: ${goPrint(patch)}`)
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
  for (const key of Object.keys(patch)) {
    if (!key.startsWith('$') && patch[key] !== null && !retained.includes(key)) throw badRequest('invalid patch format of retainKeys')
  }
  for (const key of Object.keys(original)) {
    if (!retained.includes(key)) delete original[key]
  }
}

function deleteFromPrimitiveList(original: JsonObject, key: string, items: unknown): void {
  if (!Array.isArray(items)) throw badRequest('invalid patch format of primitive list')
  const list = getOwn(original, key)
  if (Array.isArray(list)) original[key] = list.filter((item) => !items.some((doomed) => jsonEqual(item, doomed)))
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
    setOwn(original, key, Array.isArray(fresh) && merges(schema) && order !== undefined ? reorder(fresh, [], order, schema) : fresh)
  }
}

function merges(schema: Schema | undefined): boolean {
  return schema?.patchStrategies?.includes('merge') ?? false
}

function replaces(schema: Schema | undefined): boolean {
  return schema?.patchStrategies?.includes('replace') ?? false
}

/** What a patch value becomes where there is nothing to merge with: directives and nulls have done their work. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !(isObject(item) && Object.hasOwn(item, patchDirective) && item[patchDirective] !== 'merge')).map(withoutDirectives)
  }
  if (!isObject(value)) return value
  const result: JsonObject = {}
  for (const key of Object.keys(value)) {
    const isDirective = key === patchDirective || key === retainKeysDirective || key.startsWith(deletePrefix) || key.startsWith(orderPrefix)
    if (!isDirective && value[key] !== null) setOwn(result, key, withoutDirectives(value[key]))
  }
  return result
}

function mergeList(current: unknown[], patch: unknown[], schema: Schema | undefined, order: unknown): unknown[] {
  const mergeKey = schema?.patchMergeKey
  const sample = current[0] ?? patch[0]
  if (!isObject(sample) || mergeKey === undefined) {
    const merged = [...current]
    for (const item of patch) {
      if (!merged.some((known) => jsonEqual(known, item))) merged.push(deepCopy(item))
    }
    return order === undefined ? merged : reorder(merged, current, order, schema)
  }
  if (patch.some((item) => isObject(item) && item[patchDirective] === 'replace')) return withoutDirectives(patch) as unknown[]
  let merged = [...current]
  for (const item of patch) {
    if (!isObject(item)) throw fault(`The order in patch list:\n${goPrint(patch)}\n doesn't match the type of the list`)
    const directive = getOwn(item, patchDirective)
    const key = getOwn(item, mergeKey)
    if (key === undefined) throw fault(`map: ${goPrint(item)} does not contain declared merge key: ${mergeKey}`)
    if (directive === 'delete') {
      merged = merged.filter((known) => !(isObject(known) && jsonEqual(known[mergeKey], key)))
      continue
    }
    if (directive !== undefined && directive !== 'merge') throw fault(`unknown patch type: ${goPrint(directive)} in map: ${goPrint(item)}`)
    const at = merged.findIndex((known) => isObject(known) && jsonEqual(known[mergeKey], key))
    if (at >= 0) merged[at] = mergeObject(merged[at] as JsonObject, item, schema?.element)
    else merged.push(withoutDirectives(item))
  }
  return order === undefined ? merged : reorder(merged, current, order, schema)
}

/** `$setElementOrder` without a patch for the list itself. */
function orderOnly(original: JsonObject, patch: JsonObject, key: string, order: unknown, schema: Schema | undefined): void {
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list')
  const list = getOwn(original, key)
  if (!Object.hasOwn(patch, key) && Array.isArray(list)) original[key] = reorder(list, list, order, schema)
}

/**
 * Brings `merged` into the client's order. Items that the order does not name (the server's own) keep their place relative to the
 * named ones as far as the old list tells.
 */
function reorder(merged: unknown[], before: readonly unknown[], order: unknown, schema: Schema | undefined): unknown[] {
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list')
  const mergeKey = schema?.patchMergeKey
  const identity = (item: unknown): unknown => (mergeKey !== undefined && isObject(item) ? item[mergeKey] : item)
  const position = (list: readonly unknown[], item: unknown): number => list.findIndex((other) => jsonEqual(identity(other), identity(item)))
  const named = merged.filter((item) => position(order, item) >= 0).sort((a, b) => position(order, a) - position(order, b))
  const own = merged.filter((item) => position(order, item) < 0).sort((a, b) => position(before, a) - position(before, b))
  const result: unknown[] = []
  for (const item of named) {
    const at = position(before, item)
    while (own.length > 0 && at >= 0 && position(before, own[0]) >= 0 && position(before, own[0]) < at) result.push(own.shift())
    result.push(item)
  }
  return [...result, ...own]
}
