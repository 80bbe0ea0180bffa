/** Items of a list that stand further up already (L1): in one pass, for lists may be as long as a request. */

/** @returns each with its index */
export function repeatedItems<T>(items: readonly T[]): (readonly [index: number, item: T])[] {
  const seen = new Set<T>()
  return items.flatMap((item, index) => (seen.size < seen.add(item).size ? [] : [[index, item] as const]))
}
