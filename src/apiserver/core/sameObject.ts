/** Deep equality of JSON values (L3), by which the registry detects writes without changes, and changed specs. */
import { ownValue } from '#base/bareMap'

/** Whether two JSON values are the same; a member that is undefined counts as absent. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!deepEqual(a[i], b[i])) return false
    return true
  }
  if (Array.isArray(b)) return false
  return sameFields(a as Record<string, unknown>, b as Record<string, unknown>, none)
}

type Fields = Record<string, unknown>

const none: ReadonlySet<string> = new Set()
const resourceVersion: ReadonlySet<string> = new Set(['resourceVersion'])
const metadata: ReadonlySet<string> = new Set(['metadata'])
const notSpec: ReadonlySet<string> = new Set(['metadata', 'status', 'apiVersion', 'kind'])
const notSpecOrStatus: ReadonlySet<string> = new Set(['metadata', 'apiVersion', 'kind'])

/** Absent and undefined are the same; `except` names fields that are not compared. */
function sameFields(a: Record<string, unknown>, b: Record<string, unknown>, except: ReadonlySet<string>): boolean {
  for (const key in a) if (a[key] !== undefined && !except.has(key) && !deepEqual(a[key], ownValue(b, key))) return false
  for (const key in b) if (b[key] !== undefined && !except.has(key) && ownValue(a, key) === undefined) return false
  return true
}

/** Equal but for metadata.resourceVersion. */
export function sameObject(a: object, b: object): boolean {
  const metaA = (a as { metadata: Fields }).metadata
  const metaB = (b as { metadata: Fields }).metadata
  return sameFields(metaA, metaB, resourceVersion) && sameFields(a as Fields, b as Fields, metadata)
}

/** Equal in the fields that metadata.generation counts: all but metadata and, if there is a status subresource, status. */
export function sameSpec(a: object, b: object, withStatus = false): boolean {
  return sameFields(a as Fields, b as Fields, withStatus ? notSpecOrStatus : notSpec)
}

/** Treats absent, null and the empty list as equal. Go treats only some of these as equal, so a false is certain and a true is not. */
export function mayBeEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (isNil(a) || isNil(b)) return isNil(a) && isNil(b)
  if (typeof a !== 'object' || typeof b !== 'object') return false
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => mayBeEqual(item, b[i]))
  return !Array.isArray(b) && mayHaveSameFields(a as Fields, b as Fields, none)
}

/** As {@link mayBeEqual}, for all fields except metadata. */
export function mayBeSameContent(a: object, b: object): boolean {
  return mayHaveSameFields(a as Fields, b as Fields, metadata)
}

/** As {@link mayBeEqual}, for the fields that {@link sameSpec} compares. */
export function mayBeSameSpec(a: object, b: object, withStatus = false): boolean {
  return mayHaveSameFields(a as Fields, b as Fields, withStatus ? notSpecOrStatus : notSpec)
}

function mayHaveSameFields(a: Fields, b: Fields, except: ReadonlySet<string>): boolean {
  for (const key in a) if (!except.has(key) && !mayBeEqual(a[key], ownValue(b, key))) return false
  for (const key in b) if (!except.has(key) && ownValue(a, key) === undefined && !isNil(b[key])) return false
  return true
}

function isNil(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}
