/**
 * Sets of field paths (L1), kept in the very form in which FieldsV1 travels, so that reading and writing managedFields costs nothing.
 * A set is a tree: `{"f:spec": {"f:replicas": {}, "f:ports": {".": {}, "k:{\"port\":80}": {…}}}}`. A node is a member when it is empty or
 * holds "."; the root is never a member. All functions are pure; their results share unchanged parts with their inputs.
 * Upstream: structured-merge-diff/v6/fieldpath (v1.36).
 */

import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { parseExactly } from '../machinery/json.ts'

export interface FieldSet {
  readonly [element: string]: FieldSet
}

export interface MutableFieldSet {
  [element: string]: FieldSet
}

export const member: FieldSet = Object.freeze({})

export function isEmpty(set: FieldSet): boolean {
  for (const _ in set) return false
  return true
}

function isMember(node: FieldSet): boolean {
  return isEmpty(node) || Object.hasOwn(node, '.')
}

/** Members of either. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a
  if (isEmpty(a)) return b
  const result: MutableFieldSet = { ...a }
  for (const element of Object.keys(b)) {
    const left = result[element]
    const right = b[element] as FieldSet
    result[element] = left === undefined || element === '.' ? right : unionNodes(left, right)
  }
  return result
}

function unionNodes(a: FieldSet, b: FieldSet): FieldSet {
  const merged = union(a, b)
  // An empty node is a member without children. A node with children is a member only with ".".
  return isEmpty(a) !== isEmpty(b) && !Object.hasOwn(merged, '.') ? { '.': member, ...merged } : merged
}

/** Members of `a` that are not members of `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, b, false, (inA, inB) => inA && !inB) ?? {}
}

/** Members of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return intersectNodes(a, b, true) ?? {}
}

/** `a` without the members of `b` and everything below them. */
export function differenceBelow(a: FieldSet, b: FieldSet): FieldSet {
  const result: MutableFieldSet = {}
  for (const element of Object.keys(a)) {
    const left = a[element] as FieldSet
    const right = b[element]
    if (right === undefined || element === '.') result[element] = left
    else if (!isMember(right)) {
      const rest = isEmpty(left) ? left : differenceBelow(left, right)
      if (isEmpty(left) || !isEmpty(rest)) result[element] = rest
    }
  }
  return result
}

function combine(a: FieldSet, b: FieldSet, nested: boolean, keep: (inA: boolean, inB: boolean) => boolean): FieldSet | undefined {
  const result: MutableFieldSet = {}
  let changed = false
  let children = 0
  for (const element of Object.keys(a)) {
    if (element === '.') continue
    const left = a[element] as FieldSet
    const right = b[element]
    const kept = right === undefined ? left : combine(left, right, true, keep)
    if (kept !== left) changed = true
    if (kept !== undefined) {
      result[element] = kept
      children++
    }
  }
  const wasMember = nested && isMember(a)
  const stays = wasMember && keep(true, isMember(b))
  if (!changed && stays === wasMember) return a
  if (children === 0) return stays ? member : undefined
  return stays ? { '.': member, ...result } : result
}

function intersectNodes(a: FieldSet, b: FieldSet, root: boolean): FieldSet | undefined {
  const result: MutableFieldSet = {}
  let children = 0
  for (const element of Object.keys(a)) {
    if (element === '.') continue
    const right = b[element]
    if (right === undefined) continue
    const shared = intersectNodes(a[element] as FieldSet, right, false)
    if (shared !== undefined) {
      result[element] = shared
      children++
    }
  }
  const both = !root && isMember(a) && isMember(b)
  if (children === 0) return both ? member : undefined
  return both ? { '.': member, ...result } : result
}

export function equals(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((element) => Object.hasOwn(b, element) && equals(a[element] as FieldSet, b[element] as FieldSet))
}

/** The set with every named parent of a member made a member too (fields only, not list items). */
export function withNamedParents(set: FieldSet): FieldSet {
  const result: MutableFieldSet = {}
  for (const element of Object.keys(set)) {
    const node = set[element] as FieldSet
    const inner = isEmpty(node) ? node : withNamedParents(node)
    result[element] = element.startsWith('f:') && !isMember(inner) ? { '.': member, ...inner } : inner
  }
  return result
}

/** Dotted field names ('status', 'metadata.labels') as a set. */
export function setOfFields(names: readonly string[]): FieldSet {
  let set: FieldSet = {}
  for (const name of names) {
    const path = name.split('.').reduceRight<FieldSet>((node, part) => ({ [`f:${part}`]: node }), member)
    set = union(set, path)
  }
  return set
}

/** The members as upstream prints them: `.spec.containers[name="web"].image`, sorted. */
export function pathsOf(set: FieldSet): string[] {
  const paths: string[] = []
  collect(set, '', paths)
  return paths
}

function collect(set: FieldSet, prefix: string, paths: string[]): void {
  for (const element of Object.keys(set).sort()) {
    if (element === '.') continue
    const node = set[element] as FieldSet
    const path = prefix + printElement(element)
    if (isMember(node)) paths.push(path)
    collect(node, path, paths)
  }
}

/** One step of a path: `.image`, `[name="web"]`, `[="x"]`. */
export function printElement(element: string): string {
  const text = element.slice(2)
  switch (element.slice(0, 2)) {
    case 'f:':
      return `.${text}`
    case 'k:': {
      const key = parseExactly(text) as Record<string, unknown>
      const members = Object.keys(key)
        .sort()
        .map((name) => `${name}=${stringifyExactly(key[name])}`)
      return `[${members.join(',')}]`
    }
    case 'v:':
      return `[=${text}]`
    default:
      return `[${text}]`
  }
}
