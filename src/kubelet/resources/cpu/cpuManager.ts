/**
 * The CPU manager (L3): a policy with its remembered state, and which CPUs each container may run on.
 * Upstream: kubelet/cm/cpumanager/cpu_manager.go, policy_none.go (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { CheckpointFile } from '../../core/checkpointFile.ts'
import { type CpuSet, intersection, noCpus, union } from '../../core/cpuSet.ts'
import { allCpus, type CpuLayout } from '../../core/machineTopology.ts'
import type { HintProvider } from '../topology/topologyManager.ts'
import { type CpuState, createCpuState, parseCpuState, renderCpuState } from './cpuState.ts'
import { staticOptions } from './options.ts'

export interface CpuManager extends HintProvider {
  readonly policy: string
  /** The CPUs on which the container may run; undefined: no restriction. */
  cpusOf(podUid: string, container: string): CpuSet | undefined
  /** What it has for itself. */
  exclusive(podUid: string, container: string): CpuSet
  allocatable(): CpuSet
  /** All that containers have for themselves. */
  assigned(): CpuSet
  /** What could still be had, and is shared until then. */
  available(): CpuSet
  release(podUid: string): void
  /** Pods that hold CPUs. */
  pods(): ReadonlySet<string>
  save(): Promise<void>
}

export interface CpuManagerSettings {
  readonly policy: string
  readonly options: Readonly<Record<string, string>>
  readonly featureGates: Readonly<Record<string, boolean>>
  /** In thousandths. */
  readonly reservedMilliCpu: number
  /** Named CPUs, which win over the amount. */
  readonly reservedCpus: CpuSet
}

type CpuPolicy = HintProvider & { readonly allocatable: CpuSet; release(podUid: string): void }

interface Policy {
  readonly name: string
  create(layout: CpuLayout, state: CpuState, settings: CpuManagerSettings): CpuPolicy | Promise<CpuPolicy>
}

const none: Policy = {
  name: 'none',
  create: (layout, _state, { options }) => {
    const given = Object.keys(options)
    if (given.length > 0) throw new Error(`None policy: received unsupported options=${JSON.stringify(options)}`)
    return { allocatable: allCpus(layout.topology), hints: () => ({}), podHints: () => ({}), allocate: () => {}, release: () => {} }
  },
}

const fixed: Policy = {
  name: 'static',
  create: async (layout, state, settings) => {
    const { reservedCpus, reservedMilliCpu } = settings
    if (reservedCpus.length === 0 && reservedMilliCpu === 0) {
      throw new Error(
        '[cpumanager] unable to determine reserved CPU resources for static policy: set systemReserved.cpu, kubeReserved.cpu or reservedSystemCPUs',
      )
    }
    const count = reservedCpus.length > 0 ? reservedCpus.length : Math.ceil(reservedMilliCpu / 1000)
    const { createStaticCpuPolicy } = await import('./staticPolicy.ts')
    return createStaticCpuPolicy(layout, state, staticOptions(settings.options, settings.featureGates), { count, cpus: reservedCpus })
  },
}

export const cpuPolicies: readonly Policy[] = [none, fixed]

/** @throws Error for settings that cannot be, or a remembered state that does not fit them. */
export async function createCpuManager(layout: CpuLayout, settings: CpuManagerSettings, file: CheckpointFile): Promise<CpuManager> {
  const chosen = cpuPolicies.find(({ name }) => name === settings.policy)
  if (!chosen) throw new Error(`unknown policy: "${settings.policy}"`)
  const text = await file.read()
  let state = createCpuState()
  try {
    if (text !== undefined) state = createCpuState(parseCpuState(text, settings.policy))
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(
      `could not restore state from checkpoint: ${reason}, please drain this node and delete the CPU manager checkpoint file "${file.path}" before restarting Kubelet`,
    )
  }
  const policy = await chosen.create(layout, state, settings)
  const save = () => file.write(() => renderCpuState(settings.policy, state))
  await save()
  return {
    policy: settings.policy,
    hints: policy.hints,
    podHints: policy.podHints,
    allocate: policy.allocate,
    cpusOf: (podUid, container) => {
      const cpus = state.exclusive(podUid, container) ?? state.shared()
      return cpus.length > 0 ? cpus : undefined
    },
    exclusive: (podUid, container) => state.exclusive(podUid, container) ?? noCpus,
    allocatable: () => policy.allocatable,
    assigned: () => union(...state.assignments().map(({ cpus }) => cpus)),
    available: () => intersection(state.shared(), policy.allocatable),
    release: (podUid) => policy.release(podUid),
    pods: () => new Set(state.assignments().map(({ podUid }) => podUid)),
    save,
  }
}
