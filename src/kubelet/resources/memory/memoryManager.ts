/**
 * The memory manager (L3): a policy with its remembered state, and on which NUMA nodes a container's memory must be.
 * Upstream: kubelet/cm/memorymanager/memory_manager.go, policy_none.go (v1.36).
 */
import { amountsOf } from '#api/helpers/podResources'
import { emptyMap, ownValue } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import type { CheckpointFile } from '../../core/checkpointFile.ts'
import type { MachineTopology } from '../../core/machineTopology.ts'
import type { MemoryReservation } from '../../core/resourceConfig.ts'
import type { HintProvider } from '../topology/topologyManager.ts'
import { emptyMachine, type ReservedMemory } from './emptyMachine.ts'
import { type MemoryBlock, type MemoryState, parseMemoryState, renderMemoryState } from './memoryState.ts'

export interface MemoryManagerSettings {
  readonly policy: string
  readonly reservedMemory: readonly MemoryReservation[]
  /** What the node keeps back altogether, in bytes: reservations must add up to it. */
  readonly nodeReserved: Readonly<Record<string, number>>
}

export interface MemoryManager extends HintProvider {
  readonly policy: string
  /** NUMA nodes of the container; empty: any. */
  nodesOf(podUid: string, container: string): readonly number[]
  blocks(podUid: string, container: string): readonly MemoryBlock[]
  /** What can be promised, per NUMA node. */
  allocatable(): MemoryBlock[]
  release(podUid: string): void
  pods(): ReadonlySet<string>
  save(): Promise<void>
}

/** @throws Error in upstream's words for reservations that do not add up. */
export function reservedMemory(topology: MachineTopology, { reservedMemory: list, nodeReserved }: MemoryManagerSettings): ReservedMemory {
  const reserved = new Map<number, Record<string, number>>()
  const totals: Record<string, number> = emptyMap()
  for (const { numaNode, limits } of list) {
    if (!topology.numaNodes.some(({ id }) => id === numaNode))
      throw new Error(`the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`)
    const ofNode = reserved.get(numaNode) ?? {}
    reserved.set(numaNode, ofNode)
    for (const [name, bytes] of Object.entries(amountsOf(limits))) {
      ofNode[name] = (ofNode[name] ?? 0) + bytes
      totals[name] = (totals[name] ?? 0) + bytes
    }
  }
  for (const name of new Set([...Object.keys(totals), ...Object.keys(nodeReserved)])) {
    const [given, wanted] = [totals[name] ?? 0, ownValue(nodeReserved, name) ?? 0]
    if (given !== wanted)
      throw new Error(`the total amount "${given}" of type "${name}" is not equal to the value "${wanted}" determined by Node Allocatable feature`)
  }
  return reserved
}

type MemoryPolicy = HintProvider & { release(podUid: string): void }

interface Policy {
  readonly name: string
  create(topology: MachineTopology, state: MemoryState, settings: MemoryManagerSettings): MemoryPolicy | Promise<MemoryPolicy>
}

const none: Policy = {
  name: 'None',
  create: () => ({ hints: () => ({}), podHints: () => ({}), allocate: () => {}, release: () => {} }),
}

const fixed: Policy = {
  name: 'Static',
  create: async (topology, state, settings) => {
    const reserved = reservedMemory(topology, settings)
    const { createStaticMemoryPolicy } = await import('./staticPolicy.ts')
    return createStaticMemoryPolicy(topology, reserved, state)
  },
}

export const memoryPolicies: readonly Policy[] = [none, fixed]

/** @throws Error for settings that cannot be, or a remembered state that does not fit them. */
export async function createMemoryManager(topology: MachineTopology, settings: MemoryManagerSettings, file: CheckpointFile): Promise<MemoryManager> {
  const chosen = memoryPolicies.find(({ name }) => name === settings.policy)
  if (!chosen) throw new Error(`unknown policy: "${settings.policy}"`)
  const text = await file.read()
  let state: MemoryState = { machine: {}, entries: {} }
  try {
    if (text !== undefined) state = parseMemoryState(text, settings.policy)
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(
      `could not restore state from checkpoint: ${reason}, please drain this node and delete the memory manager checkpoint file "${file.path}" before restarting Kubelet`,
    )
  }
  const policy = await chosen.create(topology, state, settings)
  const save = () => file.write(() => renderMemoryState(settings.policy, state))
  await save()
  const blocks = (podUid: string, container: string) => ownValue(ownValue(state.entries, podUid), container) ?? []
  return {
    policy: settings.policy,
    hints: policy.hints,
    podHints: policy.podHints,
    allocate: policy.allocate,
    blocks,
    nodesOf: (podUid, container) => [...new Set(blocks(podUid, container).flatMap(({ numaAffinity }) => numaAffinity))].sort((a, b) => a - b),
    allocatable: () => {
      if (settings.policy === 'None') return []
      const machine = emptyMachine(topology, reservedMemory(topology, settings))
      return Object.entries(machine).flatMap(([id, { memoryMap }]) =>
        Object.entries(memoryMap).map(([type, { allocatable }]) => ({ numaAffinity: [Number(id)], type, size: allocatable })),
      )
    },
    release: (podUid) => policy.release(podUid),
    pods: () => new Set(Object.keys(state.entries)),
    save,
  }
}
