/**
 * The least and the greatest of many numbers, and lists that take in others (L0). `greatest(list)` and `push(...list)` put each item on the stack,
 * and throw a RangeError from about 100,000 items on.
 */

/** Infinity when there is none. */
export function least(values: Iterable<number>, atMost = Number.POSITIVE_INFINITY): number {
  let found = atMost
  for (const value of values) found = Math.min(found, value)
  return found
}

/** `atLeast` when there is none greater; by default -Infinity. */
export function greatest(values: Iterable<number>, atLeast = Number.NEGATIVE_INFINITY): number {
  let found = atLeast
  for (const value of values) found = Math.max(found, value)
  return found
}

/** Adds all items to the end of `list`, and returns it. */
export function append<T>(list: T[], items: Iterable<T>): T[] {
  for (const item of items) list.push(item)
  return list
}
