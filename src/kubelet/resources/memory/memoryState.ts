/**
 * The memory of NUMA nodes that is allocated to containers (L3, pure), and the checkpoint `memory_manager_state` in upstream's format.
 * Upstream: kubelet/cm/memorymanager/state/state.go, checkpoint.go (v1.36).
 */
import { type GoValue, goChecksum, goMap, goPointer, goScalar, goSlice, goString, goStruct } from '../../core/goDump.ts'

export interface MemoryBlock {
  readonly numaAffinity: readonly number[]
  /** 'memory', or a size of huge pages. */
  readonly type: string
  size: number
}

export interface MemoryTable {
  readonly total: number
  readonly systemReserved: number
  readonly allocatable: number
  reserved: number
  free: number
}

export interface NodeMemory {
  numberOfAssignments: number
  readonly memoryMap: Readonly<Record<string, MemoryTable>>
  /** The NUMA nodes that share allocations with this one; itself when none does. */
  cells: readonly number[]
}

type Blocks = Record<string, Record<string, MemoryBlock[]>>

/** NUMA node → its memory, and pod → container → blocks. */
export interface MemoryState {
  readonly machine: Record<string, NodeMemory>
  readonly entries: Blocks
}

function checksum(policyName: string, { machine, entries }: MemoryState): number {
  const bytes = (value: number) => goScalar('uint64', value)
  const ints = (values: readonly number[]) =>
    goSlice(
      '[]int',
      values.map((value) => goScalar('int', value)),
    )
  const table = ({ total, systemReserved, allocatable, reserved, free }: MemoryTable): GoValue =>
    goPointer(
      goStruct(
        'state.MemoryTable',
        ['TotalMemSize', bytes(total)],
        ['SystemReserved', bytes(systemReserved)],
        ['Allocatable', bytes(allocatable)],
        ['Reserved', bytes(reserved)],
        ['Free', bytes(free)],
      ),
    )
  const node = ({ numberOfAssignments, memoryMap, cells }: NodeMemory): GoValue =>
    goPointer(
      goStruct(
        'state.NUMANodeState',
        ['NumberOfAssignments', goScalar('int', numberOfAssignments)],
        ['MemoryMap', goMap('map[v1.ResourceName]*state.MemoryTable', memoryMap, table)],
        ['Cells', ints(cells)],
      ),
    )
  const block = ({ numaAffinity, type, size }: MemoryBlock): GoValue =>
    goStruct('state.Block', ['NUMAAffinity', ints(numaAffinity)], ['Type', goScalar('v1.ResourceName', type)], ['Size', bytes(size)])
  const containers = (value: Record<string, MemoryBlock[]>): GoValue =>
    goMap('map[string][]state.Block', value, (blocks) => goSlice('[]state.Block', blocks.map(block)))
  return goChecksum(
    'state.MemoryManagerCheckpoint',
    ['PolicyName', goString(policyName)],
    ['MachineState', goMap('state.NUMANodeMap', machine, node)],
    ['Entries', goMap('state.ContainerMemoryAssignments', entries, containers)],
  )
}

export function renderMemoryState(policyName: string, state: MemoryState): string {
  const entries = Object.keys(state.entries).length > 0 ? { entries: state.entries } : {}
  return JSON.stringify({ policyName, machineState: state.machine, ...entries, checksum: checksum(policyName, state) })
}

/** @throws Error in upstream's words when it is damaged or another policy wrote it. */
export function parseMemoryState(text: string, policyName: string): MemoryState {
  const checkpoint = JSON.parse(text) as { policyName: string; machineState?: Record<string, NodeMemory>; entries?: Blocks; checksum: number }
  const state = { machine: checkpoint.machineState ?? {}, entries: checkpoint.entries ?? {} }
  if (checkpoint.checksum !== checksum(checkpoint.policyName, state)) throw new Error('checkpoint is corrupted')
  if (checkpoint.policyName !== policyName) {
    throw new Error(`[memorymanager] configured policy "${policyName}" differs from state checkpoint policy "${checkpoint.policyName}"`)
  }
  return state
}
