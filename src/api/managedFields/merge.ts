/**
 * Merging an applied configuration into the live object, and taking out what is no longer applied (L1). Pure: inputs stay as they are.
 * Upstream: structured-merge-diff/v6/typed/merge.go and remove.go (v1.36).
 */
import { deepCopy } from '#base/frozen'
import { hasMoreMembers } from '#base/members'
import type { Steps } from '#base/steps'
import { getOwn, type JsonObject, setOwn } from '../machinery/objects.ts'
import type { Schema } from '../schema/schema.ts'
import type { FieldSet } from './fieldSet.ts'
import { duplicatesOf, itemElement, itemsByElement, memberNames, memberSchema, shapeOf } from './typed.ts'

/** The live value with the configuration's content laid over it. */
export function mergeTyped(live: unknown, config: unknown, schema: Schema | undefined): unknown {
  if (config === undefined) return deepCopy(live)
  // Nothing to lay over what is merged member by member; any other value gives way to the null.
  if (config === null && holdsMembers(live, schema)) return deepCopy(live)
  const shape = shapeOf(config, schema)
  if (live === undefined || shape === 'leaf' || shapeOf(live, schema) !== shape) return deepCopy(config)
  if (shape === 'items') return mergeItems(live as unknown[], config as unknown[], schema)
  const result: JsonObject = {}
  const left = live as JsonObject
  const right = config as JsonObject
  for (const name of memberNames(left, right)) setOwn(result, name, mergeTyped(getOwn(left, name), getOwn(right, name), memberSchema(schema, name)))
  return result
}

/** So many members take long enough for pauses between them. */
const manyMembers = 4000
/** After each member of an object with so few there is one. */
const fewMembers = 32

/** {@link mergeTyped}; pauses within large objects. */
export function* mergingSteps(live: unknown, config: unknown, schema: Schema | undefined): Steps<unknown> {
  const areMembers = shapeOf(live, schema) === 'members' && shapeOf(config, schema) === 'members'
  if (!areMembers || !(hasMoreMembers(live as object, manyMembers) || hasMoreMembers(config as object, manyMembers))) return mergeTyped(live, config, schema)
  const result: JsonObject = {}
  let merged = 0
  for (const name of memberNames(live as JsonObject, config as JsonObject)) {
    const [left, right, inner] = [getOwn(live as JsonObject, name), getOwn(config as JsonObject, name), memberSchema(schema, name)]
    setOwn(result, name, yield* mergingSteps(left, right, inner))
    if (++merged < fewMembers || merged % manyMembers === 0) yield
  }
  return result
}

function holdsMembers(value: unknown, schema: Schema | undefined): boolean {
  return value !== undefined && shapeOf(value, schema) !== 'leaf' && Object.keys(value as object).length > 0
}

/**
 * The order: the configuration's items keep theirs. The live object's own items stay in front of the shared item that they preceded;
 * an item that is new goes behind the own items before the next shared one.
 */
function mergeItems(live: readonly unknown[], config: readonly unknown[], schema: Schema | undefined): unknown[] {
  const left = live.map((item, index) => ({ item, element: itemElement(item, index, schema) }))
  const leftItems = itemsByElement(live, schema)
  const several = duplicatesOf(live, leftItems, schema)
  const rightItems = itemsByElement(config, schema)
  const result: unknown[] = []
  let l = 0
  const targets = nextShared([...rightItems.keys()], leftItems)
  let at = 0
  for (const [element, item] of rightItems) {
    const target = targets[at++]
    for (; l < left.length && left[l]?.element !== target; l++) {
      const own = left[l]
      const shared = own !== undefined && rightItems.has(own.element)
      // Shared items passed over here get their turn from the configuration; without one to wait for, they mark the end.
      if (shared && target === undefined) break
      if (own !== undefined && !shared) result.push(deepCopy(own.item))
    }
    if (target === element) l++
    // What the live object has several times cannot be merged with: the configuration's item takes the place of all.
    result.push(mergeTyped(several?.has(element) ? undefined : leftItems.get(element), item, schema?.element))
  }
  for (; l < left.length; l++) {
    const own = left[l]
    if (own && !rightItems.has(own.element)) result.push(deepCopy(own.item))
  }
  return result
}

/** For each element the next one, itself included, that the live list has too. */
function nextShared(elements: readonly string[], live: ReadonlyMap<string, unknown>): (string | undefined)[] {
  const targets: (string | undefined)[] = []
  let next: string | undefined
  for (let i = elements.length - 1; i >= 0; i--) {
    const element = elements[i]
    if (element !== undefined && live.has(element)) next = element
    targets[i] = next
  }
  return targets
}

/** `value` without the members of `doomed`; what becomes empty vanishes. Undefined when nothing is left. */
export function removeFields(value: unknown, doomed: FieldSet, schema: Schema | undefined): unknown {
  const shape = shapeOf(value, schema)
  if (shape === 'leaf') return value
  if (shape === 'items') {
    const kept: unknown[] = []
    for (const [index, item] of (value as unknown[]).entries()) {
      const node = doomed[itemElement(item, index, schema)]
      if (node === undefined) kept.push(item)
      else if (!isDoomed(node)) {
        const rest = removeFields(item, node, schema?.element)
        if (rest !== undefined) kept.push(rest)
      }
    }
    return kept.length === 0 ? undefined : kept
  }
  const result: JsonObject = {}
  let size = 0
  for (const name of Object.keys(value as JsonObject)) {
    const child = (value as JsonObject)[name]
    const node = doomed[`f:${name}`]
    if (node !== undefined && isDoomed(node)) continue
    const rest = node === undefined ? child : removeFields(child, node, memberSchema(schema, name))
    if (rest === undefined) continue
    setOwn(result, name, rest)
    size++
  }
  return size === 0 ? undefined : result
}

function isDoomed(node: FieldSet): boolean {
  return Object.keys(node).length === 0 || Object.hasOwn(node, '.')
}
