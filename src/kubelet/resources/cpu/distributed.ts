/**
 * Spreads a container's CPUs evenly over as few NUMA nodes as can hold them (L3, pure), leaving the machine as balanced as possible.
 * Option distribute-cpus-across-numa. Upstream: kubelet/cm/cpumanager/cpu_assignment.go takeByTopologyNUMADistributed (v1.36).
 */
import type { CpuSet } from '../../core/cpuSet.ts'
import { type CpuLayout, placesOf } from '../../core/machineTopology.ts'
import { combinations } from '../topology/hints.ts'
import { Accumulator, type PackingOptions, takePacked } from './accumulator.ts'

type Left = ReadonlyMap<number, number>

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, value) => total + value, 0)

/** Rounded to thousandths: equally balanced choices must compare equal. */
function standardDeviation(values: readonly number[]): number {
  const mean = sum(values) / values.length
  return Math.round(Math.sqrt(sum(values.map((value) => (value - mean) ** 2)) / values.length) * 1000) / 1000
}

interface Choice {
  readonly combination: readonly number[]
  /** The nodes that give the CPUs which do not divide evenly. */
  readonly remainder: readonly number[]
  readonly balance: number
}

/** How balanced the machine is when `subset` gives the remainder in groups. */
function balanceWith(left: Left, subset: readonly number[], remainder: number, groupSize: number): number | undefined {
  if (sum(subset.map((node) => left.get(node) ?? 0)) < remainder) return undefined
  const after = new Map(left)
  for (let rest = remainder; rest > 0; ) {
    const before = rest
    for (const node of subset) {
      const has = after.get(node) ?? 0
      if (rest <= 0 || has < groupSize) continue
      after.set(node, has - groupSize)
      rest -= groupSize
    }
    if (rest === before) return undefined
  }
  return standardDeviation([...after.values()])
}

function bestRemainder(left: Left, combination: readonly number[], remainder: number, groupSize: number): Omit<Choice, 'combination'> | undefined {
  if (remainder === 0) return { remainder: [], balance: standardDeviation([...left.values()]) }
  const able = combination.filter((node) => (left.get(node) ?? 0) >= groupSize)
  let best: Omit<Choice, 'combination'> | undefined
  for (let size = able.length; size >= 1; size--) {
    for (const subset of combinations(able, size)) {
      const balance = balanceWith(left, subset, remainder, groupSize)
      if (balance !== undefined && (!best || balance < best.balance)) best = { remainder: subset, balance }
    }
  }
  return best
}

function evaluate(free: Left, combination: readonly number[], count: number, groupSize: number): Choice | undefined {
  const has = combination.map((node) => free.get(node) ?? 0)
  if (sum(has.map((cpus) => Math.floor(cpus / groupSize))) * groupSize < count) return undefined
  const share = Math.floor(count / combination.length / groupSize) * groupSize
  if (has.some((cpus) => cpus < share)) return undefined
  const left = new Map([...free].map(([node, cpus]) => [node, combination.includes(node) ? cpus - share : cpus]))
  const rest = bestRemainder(left, combination, count - share * combination.length, groupSize)
  return rest && { combination, ...rest }
}

/** @throws Error when there are not that many. */
export function takeDistributed(layout: CpuLayout, available: CpuSet, count: number, groupSize: number, options: PackingOptions): CpuSet {
  const packed = () => takePacked(layout, available, count, options)
  // What does not divide into groups cannot be distributed in groups.
  if (count % groupSize !== 0 || count < 1 || count > available.length) return packed()
  const accumulator = new Accumulator(layout, available, count)
  const nodes = accumulator.sorted('numaNode')
  const within = (node: number) => layout.within(accumulator.free, 'numaNode', node)
  const free = new Map(nodes.map((node) => [node, within(node).length]))
  const most = Math.min(nodes.length, placesOf(layout.topology, 'numaNode').length, Math.ceil(count / groupSize))
  for (let size = 1; size <= most; size++) {
    let best: Choice | undefined
    for (const combination of combinations(nodes, size)) {
      const choice = evaluate(free, combination, count, groupSize)
      if (choice && (!best || choice.balance < best.balance)) best = choice
      if (best?.balance === 0) break
    }
    if (!best) continue
    const plain = { ...options, alignByUncoreCache: false }
    const share = Math.floor(count / size / groupSize) * groupSize
    for (const node of best.combination) accumulator.take(takePacked(layout, within(node), share, plain))
    while (!accumulator.satisfied) {
      for (const node of best.remainder) {
        if (!accumulator.satisfied && within(node).length >= groupSize) accumulator.take(takePacked(layout, within(node), groupSize, plain))
      }
    }
    return accumulator.taken
  }
  return packed()
}
