/**
 * The static CPU policy (L3, pure over its state): containers of Guaranteed pods that request whole CPUs get exclusive ones; all others
 * run on the rest. Upstream: kubelet/cm/cpumanager/policy_static.go (v1.36).
 */
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer } from '../../core/containers.ts'
import { type CpuSet, cpuSet, difference, formatCpuSet, intersection, noCpus, sameCpus, union } from '../../core/cpuSet.ts'
import { allCpus, type CpuLayout, cpusPer } from '../../core/machineTopology.ts'
import { InitReuse } from '../initReuse.ts'
import { type NumaMask, nodeCount, nodeMasks, nodesIn, type ProviderHints, type TopologyHint } from '../topology/hints.ts'
import { AdmissionError, type HintProvider } from '../topology/topologyManager.ts'
import { takePacked } from './accumulator.ts'
import type { CpuState } from './cpuState.ts'
import { takeDistributed } from './distributed.ts'
import { exclusiveCpus } from './exclusiveCpus.ts'
import type { StaticOptions } from './options.ts'

/** The larger of what the regular containers with sidecars need, and each init step. */
function podExclusiveCpus(pod: FrozenPod): number {
  let sidecars = 0
  let peak = 0
  for (const container of pod.spec.initContainers ?? []) {
    const own = exclusiveCpus(pod, container)
    if (isRestartableInitContainer(container)) sidecars += own
    peak = Math.max(peak, isRestartableInitContainer(container) ? sidecars : sidecars + own)
  }
  return Math.max(peak, sidecars + pod.spec.containers.reduce((sum, container) => sum + exclusiveCpus(pod, container), 0))
}

export interface StaticCpuPolicy extends HintProvider {
  /** CPUs that containers can have for themselves, taken or not. */
  readonly allocatable: CpuSet
  release(podUid: string): void
}

/** @throws Error when the reservation cannot be met, or the remembered state does not fit this machine. */
export function createStaticCpuPolicy(
  layout: CpuLayout,
  state: CpuState,
  options: StaticOptions,
  reservation: { readonly count: number; readonly cpus: CpuSet },
): StaticCpuPolicy {
  const everything = allCpus(layout.topology)
  const perCore = cpusPer(layout.topology, 'core')
  const take = (available: CpuSet, count: number): CpuSet => {
    const packing = { spread: options.distributeAcrossCores, alignByUncoreCache: options.alignByUncoreCache }
    if (!options.distributeAcrossNuma) return takePacked(layout, available, count, packing)
    return takeDistributed(layout, available, count, options.fullPhysicalCpusOnly ? perCore : 1, packing)
  }
  const plain = { spread: false, alignByUncoreCache: false }
  const reserved = reservation.cpus.length > 0 ? reservation.cpus : takePacked(layout, everything, Math.min(reservation.count, everything.length), plain)
  if (reserved.length !== reservation.count) {
    throw new Error(
      `[cpumanager] unable to reserve the required amount of CPUs (size of ${formatCpuSet(reserved)} did not equal ${reservation.count}); set systemReserved.cpu, kubeReserved.cpu or reservedSystemCPUs accordingly`,
    )
  }
  const reuse = new InitReuse<number>()
  validate(state, everything, reserved, options.strictReservation)

  const available = () => difference(state.shared(), reserved)
  const reusableOf = (pod: FrozenPod) => cpuSet(reuse.of(pod, 'cpu'))

  const hintsFor = (count: number, free: CpuSet, mustHave: CpuSet): TopologyHint[] => cpuHints(layout, everything, count, free, mustHave, options.alignBySocket)

  const allocate = (pod: FrozenPod, container: FrozenContainer, affinity: NumaMask | undefined): void => {
    const count = exclusiveCpus(pod, container)
    if (count === 0) return
    const uid = pod.metadata.uid ?? ''
    const known = state.exclusive(uid, container.name)
    if (known) {
      reuse.note(pod, container, 'cpu', known)
      return
    }
    const pool = union(available(), reusableOf(pod))
    if (options.fullPhysicalCpusOnly) requireWholeCores(layout, pool, count, perCore)
    const aligned = affinity === undefined ? noCpus : nodesIn(affinity).flatMap((node) => layout.within(pool, 'numaNode', node))
    const near = aligned.length > 0 ? take(union(aligned), Math.min(aligned.length, count)) : noCpus
    const cpus = union(near, take(difference(pool, near), count - near.length))
    state.assign(uid, container.name, cpus, difference(state.shared(), cpus))
    reuse.note(pod, container, 'cpu', cpus)
  }

  return {
    allocatable: difference(everything, reserved),
    hints: (pod, container): ProviderHints => {
      const count = exclusiveCpus(pod, container)
      if (count === 0) return {}
      const known = state.exclusive(pod.metadata.uid ?? '', container.name)
      // After a restart the container keeps what it has; any other number can only be refused.
      if (known) return { cpu: known.length === count ? hintsFor(count, known, noCpus) : [] }
      return { cpu: hintsFor(count, available(), reusableOf(pod)) }
    },
    podHints: (pod): ProviderHints => {
      const count = podExclusiveCpus(pod)
      if (count === 0) return {}
      const known = union(...pod.spec.containers.map(({ name }) => state.exclusive(pod.metadata.uid ?? '', name) ?? noCpus))
      if (known.length > 0) return { cpu: known.length === count ? hintsFor(count, known, noCpus) : [] }
      return { cpu: hintsFor(count, available(), reusableOf(pod)) }
    },
    allocate: (pod, container, hint) => allocate(pod, container, hint.affinity),
    release: (podUid) => {
      reuse.forget(podUid)
      const freed = state.unassign(podUid)
      const returned = options.strictReservation ? difference(freed, reserved) : freed
      if (freed.length > 0) state.setShared(union(state.shared(), returned))
    },
  }
}

function requireWholeCores(layout: CpuLayout, pool: CpuSet, count: number, perCore: number): void {
  if (count % perCore !== 0) {
    throw new AdmissionError('SMTAlignmentError', `SMT Alignment Error: requested ${count} cpus not multiple cpus per core = ${perCore}`)
  }
  const whole = layout.touched(pool, 'core').filter((core) => layout.within(pool, 'core', core).length === perCore).length * perCore
  if (count > whole) {
    const message = `SMT Alignment Error: not enough free physical CPUs: available physical CPUs = ${whole}, requested CPUs = ${count}, CPUs per core = ${perCore}`
    throw new AdmissionError('SMTAlignmentError', message)
  }
}

/** Every combination of NUMA nodes that could give `count` CPUs, preferred where it has as few nodes as that ever takes. */
function cpuHints(layout: CpuLayout, everything: CpuSet, count: number, free: CpuSet, mustHave: CpuSet, alignBySocket: boolean): TopologyHint[] {
  const nodes = layout.touched(everything, 'numaNode')
  const inMask = (cpus: CpuSet, mask: NumaMask) => cpus.filter((cpu) => mask & (1 << (layout.info(cpu)?.numaNode ?? 0)))
  let least = nodes.length
  const masks: NumaMask[] = []
  for (const mask of nodeMasks(nodes)) {
    if (inMask(everything, mask).length >= count) least = Math.min(least, nodeCount(mask))
    if (inMask(mustHave, mask).length === mustHave.length && mustHave.length + inMask(free, mask).length >= count) masks.push(mask)
  }
  const socketsOf = (mask: NumaMask) => layout.touched(inMask(everything, mask), 'socket').length
  const perSocket = nodes.length / Math.max(1, layout.touched(everything, 'socket').length)
  const alignedBySocket = (mask: NumaMask) => alignBySocket && socketsOf(mask) <= Math.ceil(least / Math.max(1, perSocket))
  return masks.map((mask) => ({ affinity: mask, preferred: nodeCount(mask) === least || alignedBySocket(mask) }))
}

/** A fresh state gets all CPUs; a remembered one must fit machine and reservation. */
function validate(state: CpuState, everything: CpuSet, reserved: CpuSet, strict: boolean): void {
  const shared = state.shared()
  const assigned = state.assignments()
  if (shared.length === 0 && !(strict && assigned.length > 0)) {
    if (assigned.length > 0) throw new Error('default cpuset cannot be empty')
    state.setShared(strict ? difference(everything, reserved) : everything)
    return
  }
  const [all, own] = [formatCpuSet(shared), formatCpuSet(reserved)]
  if (strict) {
    if (intersection(reserved, shared).length > 0) throw new Error(`some of strictly reserved cpus: "${own}" are present in defaultCpuSet: "${all}"`)
  } else if (!sameCpus(intersection(reserved, shared), reserved)) {
    throw new Error(`not all reserved cpus: "${own}" are present in defaultCpuSet: "${all}"`)
  }
  for (const { podUid, container, cpus } of assigned) {
    if (intersection(cpus, shared).length === 0) continue
    throw new Error(`pod: ${podUid}, container: ${container} cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${all}"`)
  }
  const known = union(shared, ...assigned.map(({ cpus }) => cpus), strict ? reserved : noCpus)
  if (!sameCpus(known, everything)) {
    throw new Error(`current set of available CPUs "${formatCpuSet(everything)}" doesn't match with CPUs in state "${formatCpuSet(known)}"`)
  }
}
