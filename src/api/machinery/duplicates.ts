/** Repetitions in what clients list (L1), found in one pass: to look for each item among those before it takes minutes in a list of a hundred thousand. */

/** The indexes of values that stand further in front, too. */
export function repeatedAt(values: readonly unknown[]): ReadonlySet<number> {
  const seen = new Set<unknown>()
  const repeated = new Set<number>()
  for (const [index, value] of values.entries()) {
    if (seen.has(value)) repeated.add(index)
    else seen.add(value)
  }
  return repeated
}
