/**
 * JSON as Go's encoder writes an untyped object (L1): members sorted by name, the characters that are special in HTML and JavaScript escaped.
 * Where a hash or a comparison is made of the text, it must be Go's. Upstream: encoding/json.
 */
import { stringifyExactly } from './exactIntegers.ts'

/** Sorts at each level: a JavaScript object lists the names that are numbers first. */
export function goJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return escaped(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${escaped(name)}:${goJson(member)}`).join(',')}}`
}

function escaped(value: unknown): string {
  return stringifyExactly(value).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
