/**
 * JSON Patch, RFC 6902 (L1), with the liberties of the library that upstream uses: negative indices, `replace` and `test` of the whole
 * document, `replace` of an absent member, indices with leading zeros.
 * Upstream: gopkg.in/evanphx/json-patch.v4, apiserver/pkg/endpoints/handlers/patch.go (v1.36).
 */

import { deepCopy, deepCopyInSteps } from '#base/frozen'
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { getOwn, isObject, type JsonObject, jsonEqual, setOwn } from '../machinery/objects.ts'
import { badRequest, StatusError } from '../machinery/status.ts'
import { EditedLists } from './editedLists.ts'

const maxJsonPatchOperations = 10_000
/** Bytes of JSON that `copy` operations of one patch may add. */
const maxCopyBytes = 3 * 1024 * 1024

/** The depth that a body may have (../machinery/json.ts). Without a limit, a series of patches could make an object too deep to decode. */
const maxDepth = 1_000

export interface JsonPatchOperation {
  readonly op: string
  readonly path: string
  readonly from?: string | undefined
  readonly value?: unknown
}

/** Why an operation did not apply, in the library's words. */
class PatchFault extends Error {}

/**
 * Checks that a request body is a JSON patch.
 * @throws StatusError BadRequest, or RequestEntityTooLarge beyond 10,000 operations.
 */
export function parseJsonPatch(patch: unknown): readonly JsonPatchOperation[] {
  if (!Array.isArray(patch)) {
    const got = patch === null ? 'null' : typeof patch === 'boolean' ? 'bool' : typeof patch
    throw badRequest(`json: cannot unmarshal ${got} into Go value of type jsonpatch.Patch`)
  }
  if (patch.length > maxJsonPatchOperations) {
    throw new StatusError('RequestEntityTooLarge', `The allowed maximum operations in a JSON patch is ${maxJsonPatchOperations}, got ${patch.length}`)
  }
  for (const operation of patch) {
    if (!isObject(operation)) throw badRequest('json: cannot unmarshal a non-object into Go value of type jsonpatch.Operation')
  }
  return patch as JsonPatchOperation[]
}

/**
 * Applies a patch and returns a new document; `document` stays as it is.
 * @throws StatusError Invalid (422) with upstream's general text when an operation does not apply; its cause says which and why.
 */
export function applyJsonPatch(document: unknown, patch: readonly JsonPatchOperation[]): unknown {
  const steps = jsonPatchSteps(document, patch)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Work between two pauses of {@link jsonPatchSteps}, in characters of JSON that operations copy. */
const stepCharacters = 256 * 1024
/** Adds to each operation: the least that one costs. */
const operationCharacters = 512

/** {@link applyJsonPatch} for a caller that lets others have their turn whenever it pauses: a patch that does little never does. */
export function* jsonPatchSteps(document: unknown, patch: readonly JsonPatchOperation[]): Generator<undefined, unknown> {
  const holder: Holder = { root: { document: yield* deepCopyInSteps(document) }, lists: new EditedLists() }
  const state = { copied: 0 }
  try {
    let done = 0
    for (const operation of patch) {
      const before = state.copied
      if (operation.op === 'copy') yield* copy(holder, operation, state)
      else applyOperation(holder, operation)
      done += operationCharacters + state.copied - before
      if (done < stepCharacters) continue
      done = 0
      yield
    }
    if (state.copied > stepCharacters) yield
    holder.lists.settle(holder.root)
    if (state.copied > stepCharacters) yield
  } catch (error) {
    if (!(error instanceof PatchFault)) throw error
    throw new StatusError('Invalid', 'the server rejected our request due to an error in our request', { details: {}, cause: error })
  }
  if (yield* isDeeperThan(holder.root.document, maxDepth))
    throw new StatusError('RequestEntityTooLarge', `the patched object is nested deeper than ${maxDepth} levels`)
  return holder.root.document
}

/** The document being patched; its lists are read and changed through `lists` only. */
interface Holder {
  readonly root: { document: unknown } & JsonObject
  readonly lists: EditedLists
}

/** Members looked at between two pauses. */
const membersPerTurn = 10_000

function* isDeeperThan(value: unknown, levels: number): Generator<undefined, boolean> {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  let members = 0
  for (const name in value) {
    const part = (value as JsonObject)[name]
    if (typeof part === 'object' && (yield* isDeeperThan(part, levels - 1))) return true
    if (++members % membersPerTurn === 0) yield
  }
  return false
}

function pathOf({ op, path }: JsonPatchOperation): string {
  if (typeof path !== 'string') throw new PatchFault(`${op} operation does not apply: missing path`)
  return path
}

function* copy(holder: Holder, operation: JsonPatchOperation, state: { copied: number }): Generator<undefined, void> {
  const path = pathOf(operation)
  const value = get(holder, 'copy', required(operation, 'from') as string)
  holder.lists.settle(value)
  state.copied += stringifyExactly(value)?.length ?? 0
  if (state.copied > maxCopyBytes) {
    throw new StatusError(
      'RequestEntityTooLarge',
      `Unable to complete the copy, the accumulated size increase of copy is ${state.copied}, exceeding the limit ${maxCopyBytes}`,
    )
  }
  add(holder, 'copy', path, yield* deepCopyInSteps(value))
}

function applyOperation(holder: Holder, operation: JsonPatchOperation): void {
  const { op } = operation
  const path = pathOf(operation)
  switch (op) {
    case 'add':
      add(holder, 'add', path, required(operation, 'value'))
      break
    case 'remove':
      remove(holder, 'remove', path)
      break
    case 'replace':
      replace(holder, path, required(operation, 'value'))
      break
    case 'move': {
      const from = required(operation, 'from') as string
      if (`${path}/`.startsWith(`${from}/`) && path !== from) throw new PatchFault(`move operation does not apply: "${path}" is inside "${from}"`)
      const value = get(holder, 'move', from)
      remove(holder, 'move', from)
      add(holder, 'move', path, value)
      break
    }
    case 'test': {
      const found = lookUp(holder, path)
      holder.lists.settle(found)
      if (!jsonEqual(found === undefined ? null : found, operation.value ?? null)) throw new PatchFault(`testing value ${path} failed: test failed`)
      break
    }
    default:
      throw new PatchFault(`Unexpected kind: ${op}`)
  }
}

function required(operation: JsonPatchOperation, member: 'value' | 'from'): unknown {
  const found = operation[member]
  if (found === undefined || (member === 'from' && typeof found !== 'string')) {
    throw new PatchFault(`${operation.op} operation does not apply: missing ${member}`)
  }
  return member === 'value' ? deepCopy(found) : found
}

/** The pointer's decoded segments below the holder. */
function segments(op: string, path: string): string[] {
  if (path !== '' && !path.startsWith('/')) throw new PatchFault(`${op} operation does not apply: doc is missing path: "${path}": missing value`)
  return [
    'document',
    ...path
      .split('/')
      .slice(1)
      .map((part) => (part.includes('~') ? part.replaceAll('~1', '/').replaceAll('~0', '~') : part)),
  ]
}

interface Spot {
  readonly container: JsonObject | unknown[]
  readonly key: string
}

function findContainer(holder: Holder, op: string, path: string): Spot {
  const parts = segments(op, path)
  const key = parts.pop() as string
  let container: unknown = holder.root
  for (const part of parts) container = child(holder, container, part)
  if (typeof container !== 'object' || container === null) throw new PatchFault(`${op} operation does not apply: doc is missing path: "${path}": missing value`)
  return { container: container as JsonObject | unknown[], key }
}

function child({ lists }: Holder, container: unknown, part: string): unknown {
  if (Array.isArray(container)) {
    const index = indexOf(part, lists.length(container))
    return index === undefined ? undefined : lists.at(container, index)
  }
  return isObject(container) ? getOwn(container, part) : undefined
}

function lookUp(holder: Holder, path: string): unknown {
  let value: unknown = holder.root
  for (const part of segments('test', path)) value = child(holder, value, part)
  return value
}

function get(holder: Holder, op: string, path: string): unknown {
  const value = lookUp(holder, path)
  if (value === undefined) throw new PatchFault(`${op} operation does not apply: doc is missing from path: ${path}: missing value`)
  return value
}

/** An existing position; negative ones count from the end. */
function indexOf(part: string, length: number): number | undefined {
  if (!/^[+-]?\d+$/.test(part)) return undefined
  const index = Number(part) < 0 ? Number(part) + length : Number(part)
  return index >= 0 && index < length ? index : undefined
}

function add(holder: Holder, op: string, path: string, value: unknown): void {
  const { container, key } = findContainer(holder, op, path)
  if (!Array.isArray(container)) {
    setOwn(container, key, value)
    return
  }
  const length = holder.lists.length(container)
  if (key === '-') {
    holder.lists.insert(container, length, value)
    return
  }
  if (!/^[+-]?\d+$/.test(key)) throw new PatchFault(`value was not a proper array index: "${key}"`)
  // Negative positions count from the end of the grown list: -1 appends.
  const index = Number(key) < 0 ? Number(key) + length + 1 : Number(key)
  if (index < 0 || index > length) throw new PatchFault(`Unable to access invalid index: ${key}: invalid index referenced`)
  holder.lists.insert(container, index, value)
}

function remove(holder: Holder, op: string, path: string): void {
  const { container, key } = findContainer(holder, op, path)
  if (Array.isArray(container)) {
    const index = indexOf(key, holder.lists.length(container))
    if (index === undefined) throw new PatchFault(`Unable to access invalid index: ${key}: invalid index referenced`)
    holder.lists.remove(container, index)
    return
  }
  if (!Object.hasOwn(container, key)) throw new PatchFault(`Unable to remove nonexistent key: ${key}: missing value`)
  delete container[key]
}

function replace(holder: Holder, path: string, value: unknown): void {
  const { container, key } = findContainer(holder, 'replace', path)
  if (Array.isArray(container)) {
    const index = indexOf(key, holder.lists.length(container))
    if (index === undefined) throw new PatchFault(`replace operation does not apply: doc is missing key: ${path}: missing value`)
    holder.lists.set(container, index, value)
    return
  }
  // A member that is absent is added, unlike in RFC 6902: external-snapshotter replaces annotations that an object may lack.
  setOwn(container, key, value)
}
