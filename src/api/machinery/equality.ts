/**
 * Equality of API values (L1) as upstream's apiequality.Semantic means it, over JSON: absent, null, '', false and [] are one value, because
 * Go's types cannot tell them apart in most fields; numbers are not, since most optional numbers are pointers. Quantities compare by text.
 */
import { ownValue } from '#base/bareMap'

/** Whether two API values mean the same. */
export function semanticEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || (isEmptyValue(a) && isEmptyValue(b))) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => semanticEqual(item, b[i]))
  }
  const left = a as Readonly<Record<string, unknown>>
  const right = b as Readonly<Record<string, unknown>>
  for (const key in left) if (!semanticEqual(left[key], ownValue(right, key))) return false
  for (const key in right) if (!Object.hasOwn(left, key) && !isEmptyValue(right[key])) return false
  return true
}

/** Absent, null, '', false or an empty list. */
function isEmptyValue(value: unknown): boolean {
  return value === undefined || value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0)
}
