/** Compares JSON values (L3, pure): an absent member equals an undefined one. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const left = a as Record<string, unknown>
  const right = b as Record<string, unknown>
  for (const key of Object.keys(left)) if (!equal(left[key], right[key])) return false
  for (const key of Object.keys(right)) if (left[key] === undefined && right[key] !== undefined) return false
  return true
}
