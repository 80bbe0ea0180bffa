/** Ranges of addresses and of ports (L3), pure: a set of the kernel takes ranges only if none overlap. */
import { cidrSize, type IpBlock, networkAddress } from '#api/machinery/ip'

/** Both ends belong to the range. */
export interface Range<T extends number | bigint> {
  readonly from: T
  readonly to: T
}

export function rangeOfBlock(block: IpBlock): Range<bigint> {
  const from = networkAddress(block).value
  return { from, to: from + cidrSize(block) - 1n }
}

/** The same numbers in ranges that do not overlap, in ascending order. */
export function merged<T extends number | bigint>(ranges: readonly Range<T>[]): Range<T>[] {
  const result: { from: T; to: T }[] = []
  for (const { from, to } of [...ranges].sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))) {
    const last = result.at(-1)
    if (!last || from > last.to) result.push({ from, to })
    else if (to > last.to) last.to = to
  }
  return result
}

/** The parts of a range that are in none of the holes. @param holes as merged() returns them */
export function without(whole: Range<bigint>, holes: readonly Range<bigint>[]): Range<bigint>[] {
  const parts: Range<bigint>[] = []
  let { from } = whole
  for (const hole of holes) {
    if (hole.to < from || hole.from > whole.to) continue
    if (hole.from > from) parts.push({ from, to: hole.from - 1n })
    from = hole.to + 1n
  }
  return from > whole.to ? parts : [...parts, { from, to: whole.to }]
}

export function rangesHave<T extends number | bigint>(ranges: readonly Range<T>[], value: T): boolean {
  return ranges.some(({ from, to }) => value >= from && value <= to)
}
