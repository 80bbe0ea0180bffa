/**
 * Picks which CPUs a container gets (L3, pure): whole sockets and NUMA nodes first, then whole caches if asked, whole cores, single threads;
 * always from where least is left. Upstream: kubelet/cm/cpumanager/cpu_assignment.go (v1.36).
 */
import { greatest } from '#base/extremes'
import { type CpuSet, cpuSet, difference, noCpus, union } from '../../core/cpuSet.ts'
import { type CpuLayout, cpusPer, placesOf } from '../../core/machineTopology.ts'

export interface PackingOptions {
  /** One thread of as many cores as possible, rather than whole cores. */
  readonly spread: boolean
  readonly alignByUncoreCache: boolean
}

type Place = 'core' | 'socket' | 'numaNode' | 'uncoreCache'

/** The number of CPUs still needed, the free CPUs, and the chosen CPUs. */
export class Accumulator {
  readonly layout: CpuLayout
  free: CpuSet
  needed: number
  taken: CpuSet = noCpus
  /** From the outside in: which of socket and NUMA node contains the other. */
  readonly #levels: readonly [Place, Place]

  constructor(layout: CpuLayout, available: CpuSet, count: number) {
    this.layout = layout
    this.free = available
    this.needed = count
    const numaIsOutside = placesOf(layout.topology, 'socket').length >= placesOf(layout.topology, 'numaNode').length
    this.#levels = numaIsOutside ? ['numaNode', 'socket'] : ['socket', 'numaNode']
  }

  get satisfied(): boolean {
    return this.needed < 1
  }

  take(cpus: CpuSet): void {
    this.taken = union(this.taken, cpus)
    this.free = difference(this.free, cpus)
    this.needed -= cpus.length
  }

  /** The ids with free CPUs, fullest first. */
  #fullestFirst(place: Place, ids: readonly number[]): number[] {
    const left = new Map(ids.map((id) => [id, this.layout.within(this.free, place, id).length]))
    return [...ids].sort((a, b) => (left.get(a) ?? 0) - (left.get(b) ?? 0) || a - b)
  }

  /** All places of a kind with free CPUs, ordered by what contains them and then by how full they are. */
  sorted(place: Place): number[] {
    const [outer, inner] = this.#levels
    if (place === outer) return this.#fullestFirst(place, this.layout.touched(this.free, place))
    const container = place === inner ? outer : inner
    return this.sorted(container).flatMap((id) => this.#fullestFirst(place, this.layout.touched(this.layout.within(this.free, container, id), place)))
  }

  /** Whole places, while one more does not exceed the need. */
  takeWhole(place: Place): void {
    const size = (id: number) => this.layout.topology.cpus.filter((cpu) => cpu[place] === id).length
    for (const id of this.sorted(place)) {
      const cpus = this.layout.within(this.free, place, id)
      if (cpus.length === size(id) && this.needed >= cpus.length) this.take(cpus)
      if (this.satisfied) return
    }
  }

  takeWholeOuter(): void {
    this.takeWhole(this.#levels[0])
  }

  takeWholeInner(): void {
    this.takeWhole(this.#levels[1])
  }

  /** Takes all remaining CPUs from one cache, if one has enough. */
  takeFromOneCache(): void {
    this.takeWhole('uncoreCache')
    const perCore = cpusPer(this.layout.topology, 'core')
    for (const cache of this.sorted('uncoreCache')) {
      if (this.satisfied) return
      const inCache = this.layout.within(this.free, 'uncoreCache', cache)
      const cores = this.layout.touched(inCache, 'core').filter((core) => this.layout.within(this.free, 'core', core).length === perCore)
      const some = cores.slice(0, Math.ceil(this.needed / perCore)).map((core) => this.layout.within(inCache, 'core', core))
      const cpus = some.flat().slice(0, this.needed)
      if (cpus.length === this.needed) this.take(cpuSet(cpus))
    }
  }

  takeSingles(spread: boolean): void {
    for (const cpu of spread ? this.#spreadOrder() : this.#packedOrder()) {
      if (this.satisfied) return
      this.take([cpu])
    }
  }

  #packedOrder(): number[] {
    return this.sorted('core').flatMap((core) => this.layout.within(this.free, 'core', core))
  }

  /** First one thread of every core, then the next of every core. */
  #spreadOrder(): number[] {
    const byCore = this.sorted('core').map((core) => [...this.layout.within(this.free, 'core', core)])
    const longest = greatest(
      byCore.map((cpus) => cpus.length),
      0,
    )
    return Array.from({ length: longest }, (_, index) => byCore.flatMap((cpus) => cpus[index] ?? [])).flat()
  }
}

/** @throws Error when there are not that many. */
export function takePacked(layout: CpuLayout, available: CpuSet, count: number, options: PackingOptions): CpuSet {
  const accumulator = new Accumulator(layout, available, count)
  if (accumulator.satisfied) return noCpus
  if (count > available.length) throw new Error(`not enough cpus available to satisfy request: requested=${count}, available=${available.length}`)
  accumulator.takeWholeOuter()
  if (!accumulator.satisfied) accumulator.takeWholeInner()
  if (!accumulator.satisfied && options.alignByUncoreCache) accumulator.takeFromOneCache()
  if (!accumulator.satisfied && !options.spread) accumulator.takeWhole('core')
  if (!accumulator.satisfied) accumulator.takeSingles(options.spread)
  if (!accumulator.satisfied) throw new Error('failed to allocate cpus')
  return accumulator.taken
}
