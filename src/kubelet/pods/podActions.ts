/**
 * Plans the next actions for a pod (L3, pure): kill it, create a sandbox, start containers in order. syncPod.ts carries the plan out.
 * Upstream: kuberuntime_manager.go computePodActions, kuberuntime_container.go computeInitContainerActions, util.go PodSandboxChanged (v1.36).
 */
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer, shouldRestart, shouldRestartInit } from '../core/containers.ts'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { findContainer } from '../core/podRuntimeStatus.ts'
import type { ProbeView } from '../core/probeResults.ts'
import { containerHash } from '../core/runtimeLabels.ts'

export type KillReason = 'Unknown' | 'LivenessProbe' | 'StartupProbe' | 'DefinitionChanged' | 'FailedPostStartHook'

export interface ContainerToKill {
  readonly record: ContainerRecord
  readonly container: FrozenContainer
  readonly message: string
  readonly reason: KillReason
}

export interface PodActions {
  /** Stop everything first. With createSandbox false the pod is done. */
  readonly killPod: boolean
  readonly createSandbox: boolean
  /** The sandbox to use (or to kill); empty when there is none. */
  readonly sandboxId: string
  /** The attempt number of the next sandbox. */
  readonly attempt: number
  readonly initContainersToStart: readonly FrozenContainer[]
  readonly containersToStart: readonly FrozenContainer[]
  readonly ephemeralContainersToStart: readonly FrozenContainer[]
  readonly containersToKill: readonly ContainerToKill[]
}

export function isNothing(actions: PodActions): boolean {
  const { initContainersToStart, containersToStart, ephemeralContainersToStart, containersToKill } = actions
  const lists = [initContainersToStart, containersToStart, ephemeralContainersToStart, containersToKill]
  return !actions.killPod && !actions.createSandbox && lists.every((list) => list.length === 0)
}

export interface SandboxDecision {
  readonly changed: boolean
  readonly attempt: number
  readonly sandboxId: string
}

/** Whether the pod needs a new sandbox: none is there, several are ready, the newest is not ready, its network changed, or it lost its address. */
export function podSandboxChanged(pod: FrozenPod, status: PodRuntimeStatus): SandboxDecision {
  const [newest] = status.sandboxes
  if (!newest) return { changed: true, attempt: 0, sandboxId: '' }
  const ready = status.sandboxes.filter((sandbox) => sandbox.state === 'SANDBOX_READY')
  const next = { changed: true, attempt: newest.metadata.attempt + 1, sandboxId: newest.id }
  if (ready.length > 1 || newest.state !== 'SANDBOX_READY') return next
  // A sandbox without an address is of no use unless it shares the node's.
  if (!pod.spec.hostNetwork && !newest.network?.ip) return next
  return { changed: false, attempt: newest.metadata.attempt, sandboxId: newest.id }
}

const nothing = { initContainersToStart: [], containersToStart: [], ephemeralContainersToStart: [], containersToKill: [] }

export function computePodActions(pod: FrozenPod, status: PodRuntimeStatus, probes: ProbeView): PodActions {
  const sandbox = podSandboxChanged(pod, status)
  const base: PodActions = { ...nothing, killPod: sandbox.changed, createSandbox: sandbox.changed, sandboxId: sandbox.sandboxId, attempt: sandbox.attempt }
  if (sandbox.changed) return sandboxActions(pod, status, base)
  const ephemeralContainersToStart = (pod.spec.ephemeralContainers ?? []).filter((container) => !findContainer(status, container.name))
  const init = initContainerActions(pod, status, sandbox.sandboxId, probes)
  if (init.killPod) return { ...base, killPod: true }
  const actions = { ...base, ephemeralContainersToStart, initContainersToStart: init.start, containersToKill: init.kill }
  if (!init.initialized) return actions
  const regular = regularContainerActions(pod, status, probes)
  // Nothing runs and nothing will: the sandbox goes too.
  if (regular.keep === 0 && regular.start.length === 0) return { ...base, killPod: true }
  return { ...actions, containersToStart: regular.start, containersToKill: [...init.kill, ...regular.kill] }
}

function sandboxActions(pod: FrozenPod, status: PodRuntimeStatus, base: PodActions): PodActions {
  // Without any container record no container was ever created, so the sandbox is tried again. Only the pod's own policy counts here.
  if (pod.spec.restartPolicy === 'Never' && base.attempt !== 0 && status.containers.length > 0) return { ...base, createSandbox: false }
  const containersToStart = pod.spec.containers.filter((container) => {
    const record = findContainer(status, container.name)
    const runsOnce = (container.restartPolicy ?? pod.spec.restartPolicy) === 'OnFailure'
    return !runsOnce || record?.state !== 'exited' || record.exitCode !== 0
  })
  if (containersToStart.length === 0) return { ...base, createSandbox: false }
  const first = pod.spec.initContainers?.[0]
  return first ? { ...base, initContainersToStart: [first] } : { ...base, containersToStart }
}

interface InitActions {
  readonly initialized: boolean
  readonly killPod: boolean
  readonly start: readonly FrozenContainer[]
  readonly kill: readonly ContainerToKill[]
}

/** Init containers run one after another; sidecars count as done once started and are kept running from then on. */
function initContainerActions(pod: FrozenPod, status: PodRuntimeStatus, sandboxId: string, probes: ProbeView): InitActions {
  const containers = pod.spec.initContainers ?? []
  // Records of an earlier sandbox do not count: a new sandbox initializes again.
  const records = containers.map((container) => status.containers.find((record) => record.name === container.name && record.sandboxId === sandboxId))
  const initializedBefore = pod.spec.containers.some((container) => status.containers.some((r) => r.name === container.name && r.sandboxId === sandboxId))
  const reached = initializedBefore ? containers.length : records.findLastIndex((record) => record !== undefined)
  const start: FrozenContainer[] = []
  const kill: ContainerToKill[] = []
  const done = (initialized: boolean, killPod = false): InitActions => ({ initialized, killPod, start, kill })
  for (const [index, container] of containers.entries()) {
    const record = records[index]
    const behind = index < reached
    if (!isRestartableInitContainer(container)) {
      if (behind) continue
      if (record?.state === 'running') return done(false)
      if (record?.state === 'exited' && record.exitCode === 0) continue
      if (record?.state === 'exited' && !shouldRestartInit(pod, container, record.exitCode)) return done(false, true)
      if (record?.state === 'unknown') {
        // There is no exit code that a rule could match.
        if ((container.restartPolicy ?? pod.spec.restartPolicy) === 'Never') return done(false, true)
        kill.push(unknownState(container, record, 'Init container'))
      }
      start.push(container)
      return done(false)
    }
    const failure = record?.state === 'running' ? probeFailure(container, record, probes, 'Init container') : undefined
    if (record?.state !== 'running' || failure) {
      if (failure) kill.push(failure)
      if (record?.state === 'unknown') kill.push(unknownState(container, record, 'Init container'))
      start.push(container)
      if (!behind) return done(false)
      continue
    }
    if (!behind && container.startupProbe && probes.startup(record.id) !== 'Success') return done(false)
  }
  return done(true)
}

function unknownState(container: FrozenContainer, record: ContainerRecord, what: string): ContainerToKill {
  return { container, record, reason: 'Unknown', message: `${what} is in "${record.state}" state, try killing it before restart` }
}

function probeFailure(container: FrozenContainer, record: ContainerRecord, probes: ProbeView, what = 'Container'): ContainerToKill | undefined {
  const because = (reason: KillReason, how: string) => ({ container, record, reason, message: `${what} ${container.name} ${how}` })
  if (record.hash !== containerHash(container)) return because('DefinitionChanged', 'definition changed')
  if (probes.liveness(record.id) === 'Failure') return because('LivenessProbe', 'failed liveness probe')
  if (probes.startup(record.id) === 'Failure') return because('StartupProbe', 'failed startup probe')
  return undefined
}

function regularContainerActions(pod: FrozenPod, status: PodRuntimeStatus, probes: ProbeView) {
  const start: FrozenContainer[] = []
  const kill: ContainerToKill[] = []
  let keep = 0
  for (const container of pod.spec.containers) {
    const record = findContainer(status, container.name)
    if (record?.state !== 'running') {
      if (record?.state === 'exited' && !shouldRestart(pod, container, record.exitCode)) continue
      // A container in an unknown state may still run: two of a kind must never be.
      if (record?.state === 'unknown') kill.push(unknownState(container, record, 'Container'))
      start.push(container)
      continue
    }
    const failure = probeFailure(container, record, probes)
    if (!failure) {
      keep++
      continue
    }
    // A changed definition restarts the container whatever the policy. Rules do not apply to a container that has not exited.
    const restart = failure.reason === 'DefinitionChanged' || (container.restartPolicy ?? pod.spec.restartPolicy) !== 'Never'
    if (restart) start.push(container)
    kill.push(restart ? { ...failure, message: `${failure.message}, will be restarted` } : failure)
  }
  return { keep, start, kill }
}
