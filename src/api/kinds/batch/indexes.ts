/** The written form of completion indexes, `0-2,5`, as validation reads it (L1). Upstream: pkg/apis/batch/validation validateIndexesFormat (v1.36). */

export type Interval = readonly [first: number, last: number]

/** How many indexes the text names, or what is wrong with it. */
export function countIndexes(text: string, completions: number): number | { readonly fault: string } {
  let previous: number | undefined
  let total = 0
  for (const part of text === '' ? [] : text.split(',')) {
    const interval = parseInterval(part, completions)
    if ('fault' in interval) return interval
    const [first, last] = interval
    if (previous !== undefined && previous >= first) return { fault: `non-increasing order, previous: ${previous}, current: ${first}` }
    total += last - first + 1
    previous = last
  }
  return total
}

/** The lowest index that both texts name; faulty parts are passed over. */
export function overlap(a: string, b: string, completions: number): number | undefined {
  const [left, right] = [a, b].map((text) => {
    const parts = text === '' ? [] : text.split(',').map((part) => parseInterval(part, completions))
    return parts.filter((part): part is Interval => !('fault' in part))
  }) as [Interval[], Interval[]]
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const [[first, last], [otherFirst, otherLast]] = [left[i] as Interval, right[j] as Interval]
    if (first <= otherLast && otherFirst <= last) return Math.max(first, otherFirst)
    if (first <= otherFirst) i++
    else j++
  }
  return undefined
}

function parseInterval(text: string, completions: number): Interval | { readonly fault: string } {
  const parts = text.split('-')
  if (parts.length > 2)
    return { fault: `the fragment ${JSON.stringify(text)} violates the requirement that an index interval can have at most two parts separated by '-'` }
  for (const part of parts) {
    if (!/^\+?\d+$/.test(part)) return { fault: `cannot convert string to integer for index: ${JSON.stringify(part)}` }
    if (Number(part) >= completions) return { fault: `too large index: ${JSON.stringify(part)}` }
  }
  const [first, last] = [Number(parts[0]), Number(parts[1] ?? parts[0])]
  return parts.length > 1 && first >= last ? { fault: `non-increasing order, previous: ${first}, current: ${last}` } : [first, last]
}
