/**
 * How a machine's CPUs and memory are laid out (L3, pure): threads in cores, cores below last-level caches, NUMA nodes and sockets, and what
 * memory each NUMA node has. Reading it from a machine is readTopology.ts's work. Upstream: kubelet/cm/cpumanager/topology, cadvisor MachineInfo.
 */
import { type CpuSet, cpuSet } from './cpuSet.ts'

export interface CpuInfo {
  readonly id: number
  /** Unique on the machine: the lowest thread of the core. */
  readonly core: number
  readonly socket: number
  readonly numaNode: number
  /** The last-level cache that it shares with its neighbours. */
  readonly uncoreCache: number
}

export interface NumaNode {
  readonly id: number
  readonly memoryBytes: number
  /** Page size in bytes → how many pages are set aside. */
  readonly hugepages: ReadonlyMap<number, number>
  /** To every NUMA node, in the order of their ids; 10 is the node itself. */
  readonly distances: readonly number[]
}

export interface MachineTopology {
  readonly cpus: readonly CpuInfo[]
  readonly numaNodes: readonly NumaNode[]
}

type Place = 'core' | 'socket' | 'numaNode' | 'uncoreCache'

export function allCpus({ cpus }: MachineTopology): CpuSet {
  return cpuSet(cpus.map((cpu) => cpu.id))
}

/** The ids of all cores, sockets, NUMA nodes or caches, ascending. */
export function placesOf({ cpus }: MachineTopology, place: Place): readonly number[] {
  return cpuSet(cpus.map((cpu) => cpu[place]))
}

/** How many CPUs a whole core, socket, NUMA node or cache has. */
export function cpusPer(topology: MachineTopology, place: Place): number {
  const places = placesOf(topology, place).length
  return places === 0 ? 0 : Math.floor(topology.cpus.length / places)
}

export interface CpuLayout {
  readonly topology: MachineTopology
  /** Of `cpus`, those in that core, socket, NUMA node or cache. */
  within(cpus: CpuSet, place: Place, id: number): CpuSet
  /** The cores, sockets, NUMA nodes or caches that `cpus` touch. */
  touched(cpus: CpuSet, place: Place): readonly number[]
  info(id: number): CpuInfo | undefined
}

/** Questions about a topology, with an index that is made once. */
export function cpuLayout(topology: MachineTopology): CpuLayout {
  const byId = new Map(topology.cpus.map((cpu) => [cpu.id, cpu]))
  return {
    topology,
    within: (cpus, place, id) => cpus.filter((cpu) => byId.get(cpu)?.[place] === id),
    touched: (cpus, place) => cpuSet(cpus.flatMap((cpu) => byId.get(cpu)?.[place] ?? [])),
    info: (id) => byId.get(id),
  }
}

/** A machine with one socket and NUMA node without hyperthreads: the topology of simulated nodes, and of machines without topology in /sys. */
export function uniformTopology(cpus: number, memoryBytes: number): MachineTopology {
  return {
    cpus: Array.from({ length: cpus }, (_, id) => ({ id, core: id, socket: 0, numaNode: 0, uncoreCache: 0 })),
    numaNodes: [{ id: 0, memoryBytes, hugepages: new Map(), distances: [10] }],
  }
}

/** 'hugepages-2Mi' of 2097152: the resource's name as the API writes it. */
export function hugepageResource(pageBytes: number): string {
  return `hugepages-${pageBytes % 2 ** 30 === 0 ? `${pageBytes / 2 ** 30}Gi` : pageBytes % 2 ** 20 === 0 ? `${pageBytes / 2 ** 20}Mi` : `${pageBytes / 1024}Ki`}`
}

/** Page size → bytes set aside on the whole machine. */
export function hugepageBytes({ numaNodes }: MachineTopology): Map<number, number> {
  const total = new Map<number, number>()
  for (const node of numaNodes) for (const [size, pages] of node.hugepages) total.set(size, (total.get(size) ?? 0) + size * pages)
  return total
}
