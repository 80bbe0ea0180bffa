/** Compares lists of lines (L0). */

/** The same lines in the same order; an absent list is like no other. */
export function sameLines(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a === b || (a?.length === b.length && a.every((line, i) => line === b[i]))
}
