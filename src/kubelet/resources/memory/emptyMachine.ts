/** What the memory manager can promise on a machine without pods (L3, pure). Upstream: kubelet/cm/memorymanager/policy_static.go (v1.36). */
import { emptyMap } from '#base/bareMap'
import { hugepageResource, type MachineTopology } from '../../core/machineTopology.ts'
import type { MemoryTable, NodeMemory } from './memoryState.ts'

/** NUMA node → resource → bytes that are kept back. */
export type ReservedMemory = ReadonlyMap<number, Readonly<Record<string, number>>>

/** The machine without any allocation. */
export function emptyMachine({ numaNodes }: MachineTopology, reserved: ReservedMemory): Record<string, NodeMemory> {
  const machine: Record<string, NodeMemory> = {}
  for (const { id, memoryBytes, hugepages } of numaNodes) {
    const kept = (name: string) => reserved.get(id)?.[name] ?? 0
    const table = (total: number, systemReserved: number, allocatable: number): MemoryTable => ({
      total,
      systemReserved,
      allocatable,
      reserved: 0,
      free: allocatable,
    })
    const memoryMap: Record<string, MemoryTable> = emptyMap()
    let inPages = 0
    for (const [size, pages] of hugepages) {
      const name = hugepageResource(size)
      const allocatable = Math.max(0, size * pages - kept(name))
      inPages += allocatable
      memoryMap[name] = table(size * pages, kept(name), allocatable)
    }
    memoryMap.memory = table(memoryBytes, kept('memory'), Math.max(0, memoryBytes - kept('memory') - inPages))
    machine[id] = { numberOfAssignments: 0, memoryMap, cells: [id] }
  }
  return machine
}
