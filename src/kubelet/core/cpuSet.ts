/**
 * Sets of CPUs (L3, pure): sorted lists of ids without repetition, and the kernel's list format ('0-3,8').
 * Upstream: k8s.io/utils/cpuset.
 */

/** Ascending ids, none twice. */
export type CpuSet = readonly number[]

export const noCpus: CpuSet = []

export function cpuSet(ids: Iterable<number>): CpuSet {
  return [...new Set(ids)].sort((a, b) => a - b)
}

export function union(...sets: readonly CpuSet[]): CpuSet {
  return cpuSet(sets.flat())
}

export function difference(from: CpuSet, without: CpuSet): CpuSet {
  const gone = new Set(without)
  return from.filter((id) => !gone.has(id))
}

export function intersection(a: CpuSet, b: CpuSet): CpuSet {
  const both = new Set(b)
  return a.filter((id) => both.has(id))
}

export function sameCpus(a: CpuSet, b: CpuSet): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index])
}

/** More ids than any machine has would only be a mistake or an attack. */
const maxId = 65_535

/** @throws Error for text that is no list of CPUs. */
export function parseCpuSet(text: string): CpuSet {
  const ids: number[] = []
  for (const part of text.trim().split(',')) {
    if (part === '') continue
    const match = /^(\d+)(?:-(\d+))?$/.exec(part.trim())
    const first = Number(match?.[1])
    const last = Number(match?.[2] ?? match?.[1])
    if (!match || last < first || last > maxId) throw new Error(`"${text}" is no list of CPUs: "${part}" should be a number or a range such as 0-3`)
    for (let id = first; id <= last; id++) ids.push(id)
  }
  return cpuSet(ids)
}

/** '0-3,8': ranges where there are two or more in a row. */
export function formatCpuSet(cpus: CpuSet): string {
  const ranges: [number, number][] = []
  for (const id of cpus) {
    const open = ranges.at(-1)
    if (open && open[1] === id - 1) open[1] = id
    else ranges.push([id, id])
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
}
