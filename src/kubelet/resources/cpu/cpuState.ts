/**
 * The CPUs of each container (L3, pure), and the checkpoint `cpu_manager_state` in upstream's format.
 * Upstream: kubelet/cm/cpumanager/state/state.go, checkpoint.go, state_checkpoint.go (v1.36).
 */
import { emptyMap } from '#base/bareMap'
import { type CpuSet, formatCpuSet, noCpus, parseCpuSet, union } from '../../core/cpuSet.ts'
import { type GoValue, goChecksum, goMap, goString } from '../../core/goDump.ts'

export interface CpuAssignment {
  readonly podUid: string
  readonly container: string
  readonly cpus: CpuSet
}

export interface CpuState {
  /** CPUs shared by containers without exclusive CPUs. */
  shared(): CpuSet
  setShared(cpus: CpuSet): void
  exclusive(podUid: string, container: string): CpuSet | undefined
  /** Both at once: a container's CPUs and what is left to share. */
  assign(podUid: string, container: string, cpus: CpuSet, shared: CpuSet): void
  /** Forgets the pod; answers with what it had. */
  unassign(podUid: string): CpuSet
  assignments(): CpuAssignment[]
}

/** @param remembered from an earlier life */
export function createCpuState(remembered?: { readonly shared: CpuSet; readonly assignments: readonly CpuAssignment[] }): CpuState {
  let shared = remembered?.shared ?? noCpus
  const pods = new Map<string, Map<string, CpuSet>>()
  const set = ({ podUid, container, cpus }: CpuAssignment) => {
    const containers = pods.get(podUid) ?? new Map<string, CpuSet>()
    pods.set(podUid, containers.set(container, cpus))
  }
  for (const assignment of remembered?.assignments ?? []) set(assignment)
  return {
    shared: () => shared,
    setShared: (cpus) => {
      shared = cpus
    },
    exclusive: (podUid, container) => pods.get(podUid)?.get(container),
    assign: (podUid, container, cpus, rest) => {
      set({ podUid, container, cpus })
      shared = rest
    },
    unassign: (podUid) => {
      const freed = union(...(pods.get(podUid)?.values() ?? []))
      pods.delete(podUid)
      return freed
    },
    assignments: () => [...pods].flatMap(([podUid, containers]) => [...containers].map(([container, cpus]) => ({ podUid, container, cpus }))),
  }
}

interface CpuCheckpoint {
  readonly policyName: string
  readonly defaultCpuSet: string
  readonly entries?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly checksum: number
}

function checksum({ policyName, defaultCpuSet, entries = {} }: Omit<CpuCheckpoint, 'checksum'>, type: string): number {
  const containers = (value: Readonly<Record<string, string>>): GoValue => goMap('map[string]string', value, goString)
  return goChecksum(
    type,
    ['PolicyName', goString(policyName)],
    ['DefaultCPUSet', goString(defaultCpuSet)],
    ['Entries', goMap('map[string]map[string]string', entries, containers)],
  )
}

/** Upstream's newer kubelets check against either name of the type. */
const types = ['state.CPUManagerCheckpoint', 'state.CPUManagerCheckpointV2'] as const

export function renderCpuState(policyName: string, state: CpuState): string {
  const entries: Record<string, Record<string, string>> = emptyMap()
  for (const { podUid, container, cpus } of state.assignments()) {
    const containers = entries[podUid] ?? {}
    entries[podUid] = containers
    containers[container] = formatCpuSet(cpus)
  }
  const body = { policyName, defaultCpuSet: formatCpuSet(state.shared()), ...(Object.keys(entries).length > 0 ? { entries } : {}) }
  return JSON.stringify({ ...body, checksum: checksum(body, types[0]) })
}

/** @throws Error in upstream's words when it is damaged or another policy wrote it. */
export function parseCpuState(text: string, policyName: string): { readonly shared: CpuSet; readonly assignments: readonly CpuAssignment[] } {
  const checkpoint = JSON.parse(text) as Partial<CpuCheckpoint> & { readonly defaultCPUSet?: string }
  const body = {
    policyName: checkpoint.policyName ?? '',
    defaultCpuSet: checkpoint.defaultCpuSet ?? checkpoint.defaultCPUSet ?? '',
    entries: checkpoint.entries ?? {},
  }
  if (checkpoint.checksum && !types.some((type) => checksum(body, type) === checkpoint.checksum)) throw new Error('checkpoint is corrupted')
  if (body.policyName !== policyName) throw new Error(`configured policy "${policyName}" differs from state checkpoint policy "${body.policyName}"`)
  const assignments = Object.entries(body.entries).flatMap(([podUid, containers]) =>
    Object.entries(containers).map(([container, cpus]) => ({ podUid, container, cpus: parseCpuSet(cpus) })),
  )
  return { shared: parseCpuSet(body.defaultCpuSet), assignments }
}
