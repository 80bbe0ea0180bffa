/** Own properties only (L1): patches name keys freely, and `__proto__` is an ordinary key to Kubernetes. */
import { stringifyExactly } from './exactIntegers.ts'

export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function getOwn(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Sets an own property even when its name is `__proto__`. */
export function setOwn(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true })
  else object[key] = value
}

/** Deep equality of JSON values. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]))
  }
  const left = a as JsonObject
  const right = b as JsonObject
  const keys = Object.keys(left)
  return keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key]))
}

/** A key for Maps and Sets: two JSON values have the same one exactly when they are deeply equal. */
export function jsonKey(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith('\0') ? `\0${JSON.stringify(value)}` : value
  return typeof value === 'object' && value !== null ? `\0${canonicalText(value)}` : value
}

/** JSON with sorted members. */
function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  if (!isObject(value)) return stringifyExactly(value) ?? 'null'
  const members = Object.keys(value).sort()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`).join()}}`
}

/** Go's %v of a decoded JSON value, as it appears in error texts: map[name:x ports:[1 2]]. */
export function goPrint(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goPrint).join(' ')}]`
  if (isObject(value)) {
    const members = Object.keys(value)
      .sort()
      .map((key) => `${key}:${goPrint(value[key])}`)
    return `map[${members.join(' ')}]`
  }
  return value === null || value === undefined ? '<nil>' : String(value)
}
