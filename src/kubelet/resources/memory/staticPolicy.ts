/**
 * The static memory policy (L3, pure over its state): containers of Guaranteed pods get their memory and huge pages from as few NUMA nodes as
 * possible, and nodes that share one allocation share all. Upstream: kubelet/cm/memorymanager/policy_static.go (v1.36).
 */
import { amountsOf } from '#api/helpers/podResources'
import { emptyMap, ownValue } from '#base/bareMap'
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer } from '../../core/containers.ts'
import type { MachineTopology } from '../../core/machineTopology.ts'
import { type NumaMask, nodeCount, nodeMasks, nodesIn, type ProviderHints, type TopologyHint } from '../topology/hints.ts'
import type { HintProvider } from '../topology/topologyManager.ts'
import { emptyMachine, type ReservedMemory } from './emptyMachine.ts'
import type { MemoryBlock, MemoryState, NodeMemory } from './memoryState.ts'
import { isPinned } from './pinned.ts'

type Requests = Readonly<Record<string, number>>

/** Memory and huge pages that a container asks for. */
function requestsOf(container: FrozenContainer): Requests {
  const asked = amountsOf(container.resources?.requests ?? container.resources?.limits)
  return Object.fromEntries(Object.entries(asked).filter(([name, bytes]) => (name === 'memory' || name.startsWith('hugepages-')) && bytes > 0))
}

function podRequestsOf(pod: FrozenPod): Requests {
  const total: Record<string, number> = emptyMap()
  const sidecars: Record<string, number> = emptyMap()
  const peak: Record<string, number> = emptyMap()
  const add = (to: Record<string, number>, more: Requests) => {
    for (const [name, bytes] of Object.entries(more)) to[name] = (to[name] ?? 0) + bytes
  }
  for (const container of pod.spec.initContainers ?? []) {
    const own = requestsOf(container)
    if (isRestartableInitContainer(container)) add(sidecars, own)
    for (const [name, bytes] of Object.entries(own)) {
      const step = isRestartableInitContainer(container) ? (sidecars[name] ?? 0) : (sidecars[name] ?? 0) + bytes
      peak[name] = Math.max(peak[name] ?? 0, step)
    }
  }
  add(total, sidecars)
  for (const container of pod.spec.containers) add(total, requestsOf(container))
  for (const [name, bytes] of Object.entries(peak)) total[name] = Math.max(total[name] ?? 0, bytes)
  return total
}

export interface StaticMemoryPolicy extends HintProvider {
  release(podUid: string): void
}

/** @throws Error when the remembered state does not fit this machine. */
export function createStaticMemoryPolicy(topology: MachineTopology, reserved: ReservedMemory, state: MemoryState): StaticMemoryPolicy {
  const empty = emptyMachine(topology, reserved)
  if (Object.keys(state.machine).length === 0) {
    if (Object.keys(state.entries).length > 0) throw new Error('[memorymanager] machine state can not be empty when it has memory assignments')
    Object.assign(state.machine, empty)
  }
  const essence = (machine: Record<string, NodeMemory>) =>
    JSON.stringify(
      Object.entries(machine).map(([id, node]) => [id, Object.entries(node.memoryMap).map(([name, t]) => [name, t.total, t.systemReserved, t.allocatable])]),
    )
  if (essence(state.machine) !== essence(empty)) throw new Error('[memorymanager] the expected machine state is different from the real one')
  /** Pod → NUMA mask → resource → bytes that its init containers had. */
  const reusable = new Map<string, Map<NumaMask, Record<string, number>>>()
  const nodes = topology.numaNodes.map(({ id }) => id)
  const uidOf = (pod: FrozenPod) => pod.metadata.uid ?? ''
  const reusableOf = (pod: FrozenPod, mask: NumaMask, name: string) => reusable.get(uidOf(pod))?.get(mask)?.[name] ?? 0

  const allocate = (pod: FrozenPod, container: FrozenContainer, hint: TopologyHint): void => {
    if (!isPinned(pod)) return
    const known = ownValue(state.entries[uidOf(pod)], container.name)
    if (known) {
      noteReuse(pod, container, known)
      return
    }
    const requests = requestsOf(container)
    if (Object.keys(requests).length === 0) return
    const mask = chooseMask(state.machine, nodes, requests, hint, (candidate, name) => reusableOf(pod, candidate, name))
    const blocks = Object.entries(requests).map(([type, size]): MemoryBlock => ({ numaAffinity: nodesIn(mask), type, size }))
    for (const { numaAffinity, type, size } of blocks) take(state.machine, numaAffinity, type, Math.max(0, size - reusableOf(pod, mask, type)))
    noteReuse(pod, container, blocks)
    const containers = state.entries[uidOf(pod)] ?? {}
    state.entries[uidOf(pod)] = containers
    containers[container.name] = blocks
    shrinkInitBlocks(state, pod, container, blocks)
  }

  const noteReuse = (pod: FrozenPod, container: FrozenContainer, blocks: readonly MemoryBlock[]): void => {
    for (const other of reusable.keys()) if (other !== uidOf(pod)) reusable.delete(other)
    const masks = reusable.get(uidOf(pod)) ?? new Map<NumaMask, Record<string, number>>()
    reusable.set(uidOf(pod), masks)
    const init = pod.spec.initContainers?.find(({ name }) => name === container.name)
    for (const { numaAffinity, type, size } of blocks) {
      const mask = numaAffinity.reduce((bits, node) => bits | (1 << node), 0)
      const sizes = masks.get(mask) ?? {}
      masks.set(mask, sizes)
      const before = sizes[type] ?? 0
      sizes[type] = init && !isRestartableInitContainer(init) ? Math.max(before, size) : Math.max(0, before - size)
    }
  }

  const hintsFor = (pod: FrozenPod, requests: Requests): ProviderHints => {
    if (Object.keys(requests).length === 0) return {}
    const found = memoryHints(state.machine, nodes, requests, (mask, name) => reusableOf(pod, mask, name))
    return Object.fromEntries(Object.keys(requests).map((name) => [name, found]))
  }

  return {
    hints: (pod, container) => {
      if (!isPinned(pod)) return {}
      const known = ownValue(state.entries[uidOf(pod)], container.name)
      if (known) return remembered(known)
      return hintsFor(pod, requestsOf(container))
    },
    podHints: (pod) => {
      if (!isPinned(pod)) return {}
      const known = pod.spec.containers.map(({ name }) => ownValue(state.entries[uidOf(pod)], name)).find((blocks) => blocks !== undefined)
      return known ? remembered(known) : hintsFor(pod, podRequestsOf(pod))
    },
    allocate,
    release: (podUid) => {
      reusable.delete(podUid)
      for (const blocks of Object.values(state.entries[podUid] ?? {})) for (const block of blocks) giveBack(state.machine, block)
      delete state.entries[podUid]
    },
  }
}

/** After a restart a container stays where it is. */
function remembered(blocks: readonly MemoryBlock[]): ProviderHints {
  const hint = (block: MemoryBlock): TopologyHint => ({ affinity: block.numaAffinity.reduce((bits, node) => bits | (1 << node), 0), preferred: true })
  return Object.fromEntries(blocks.map((block) => [block.type, [hint(block)]]))
}

type Reusable = (mask: NumaMask, resource: string) => number

const total = (machine: MemoryState['machine'], mask: NumaMask, name: string, member: 'free' | 'allocatable') =>
  nodesIn(mask).reduce((sum, node) => sum + (machine[node]?.memoryMap[name]?.[member] ?? 0), 0)

const hasFree = (machine: MemoryState['machine'], mask: NumaMask, requests: Requests, reusable: Reusable) =>
  Object.entries(requests).every(([name, bytes]) => total(machine, mask, name, 'free') + reusable(mask, name) >= bytes)

/** A node serves either single-node allocations, or allocations of one group of nodes. */
function isMixed(machine: MemoryState['machine'], mask: NumaMask): boolean {
  const group = nodesIn(mask)
  const cellsOf = (node: number) => machine[node]?.cells ?? []
  if (group.length === 1) return cellsOf(group[0] as number).length > 1
  return group.some((node) => (machine[node]?.numberOfAssignments ?? 0) > 0 && cellsOf(node).join() !== group.join())
}

function memoryHints(machine: MemoryState['machine'], nodes: readonly number[], requests: Requests, reusable: Reusable): TopologyHint[] {
  let least = nodes.length
  const masks: NumaMask[] = []
  for (const mask of nodeMasks(nodes)) {
    if (Object.entries(requests).some(([name, bytes]) => total(machine, mask, name, 'allocatable') < bytes)) continue
    least = Math.min(least, nodeCount(mask))
    if (!isMixed(machine, mask) && hasFree(machine, mask, requests, reusable)) masks.push(mask)
  }
  return masks.map((mask) => ({ affinity: mask, preferred: nodeCount(mask) === least }))
}

/** The hint's nodes where they suffice, else the best that contain them. @throws Error in upstream's words */
function chooseMask(machine: MemoryState['machine'], nodes: readonly number[], requests: Requests, hint: TopologyHint, reusable: Reusable): NumaMask {
  const best = (among: readonly TopologyHint[]) => {
    const preferred = among.filter((candidate) => candidate.preferred)
    return (preferred.length > 0 ? preferred : among).find(({ affinity }) => affinity !== undefined)
  }
  const all = memoryHints(machine, nodes, requests, reusable)
  let chosen = hint
  if (chosen.affinity === undefined) {
    const fallback = best(all)
    if (!fallback) throw new Error('[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available')
    if (!fallback.preferred && hint.preferred) throw new Error('[memorymanager] failed to find the default preferred hint')
    chosen = fallback
  }
  let mask = chosen.affinity ?? 0
  if (!hasFree(machine, mask, requests, reusable)) {
    const extended = best(all.filter(({ affinity = 0 }) => (affinity & mask) === mask))
    if (!extended) throw new Error('[memorymanager] failed to extend the topology manager hint, no NUMA nodes with enough memory is available')
    if (!extended.preferred && chosen.preferred) throw new Error('[memorymanager] failed to find the extended preferred hint')
    mask = extended.affinity ?? 0
  }
  if (isMixed(machine, mask)) throw new Error('[memorymanager] preferred hint violates NUMA node allocation')
  return mask
}

function take(machine: MemoryState['machine'], nodes: readonly number[], type: string, bytes: number): void {
  let left = bytes
  for (const id of nodes) {
    const node = machine[id]
    if (!node) continue
    node.numberOfAssignments++
    node.cells = nodes
    const table = node.memoryMap[type]
    if (!table) continue
    const here = Math.min(left, table.free)
    table.free -= here
    table.reserved += here
    left -= here
  }
}

function giveBack(machine: MemoryState['machine'], { numaAffinity, type, size }: MemoryBlock): void {
  let left = size
  for (const id of numaAffinity) {
    const node = machine[id]
    if (!node) continue
    node.numberOfAssignments--
    if (node.numberOfAssignments === 0) node.cells = [id]
    const table = node.memoryMap[type]
    if (!table) continue
    const here = Math.min(left, table.reserved)
    table.free += here
    table.reserved -= here
    left -= here
  }
}

/** What a container takes over from an init container is counted once: as its own. */
function shrinkInitBlocks(state: MemoryState, pod: FrozenPod, container: FrozenContainer, blocks: readonly MemoryBlock[]): void {
  for (const block of blocks) {
    let over = block.size
    for (const init of pod.spec.initContainers ?? []) {
      if (init.name === container.name || over === 0) break
      if (isRestartableInitContainer(init)) continue
      const same = ownValue(state.entries[pod.metadata.uid ?? ''], init.name)?.find(
        ({ type, numaAffinity }) => type === block.type && numaAffinity.join() === block.numaAffinity.join(),
      )
      if (!same) continue
      const taken = Math.min(over, same.size)
      same.size -= taken
      over -= taken
    }
  }
}
