/** JSON merge patch, RFC 7386 (L1). Upstream: gopkg.in/evanphx/json-patch.v4 MergePatch (v1.36). */
import { deepCopy } from '#base/frozen'
import { getOwn, isObject, type JsonObject, setOwn } from '../machinery/objects.ts'
import { badRequest } from '../machinery/status.ts'

/**
 * Applies a merge patch and returns a new document; `document` stays as it is.
 * @throws StatusError BadRequest when the patch is no object.
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) throw badRequest('Invalid JSON Patch')
  return merge(document, patch)
}

function merge(target: unknown, patch: unknown): unknown {
  if (!isObject(target)) return withoutNulls(patch)
  if (!isObject(patch)) return deepCopy(patch)
  const result: JsonObject = {}
  for (const key of Object.keys(target)) {
    if (!Object.hasOwn(patch, key)) setOwn(result, key, deepCopy(target[key]))
    else if (patch[key] !== null) setOwn(result, key, merge(target[key], patch[key]))
  }
  for (const key of Object.keys(patch)) {
    if (getOwn(target, key) === undefined && patch[key] !== null) setOwn(result, key, withoutNulls(patch[key]))
  }
  return result
}

/** Nulls mean removal: where there is nothing to remove they vanish, in objects inside lists too. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  const result: JsonObject = {}
  for (const key of Object.keys(value)) {
    if (value[key] !== null) setOwn(result, key, withoutNulls(value[key]))
  }
  return result
}
