/** The conditions that the kubelet owns (L3, pure). Upstream: kubelet/status/generate.go (v1.36). */
import type { ContainerStatus, PodCondition } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type FrozenPod, isRestartableInitContainer, statusFinder } from './containers.ts'

type Statuses = readonly Frozen<ContainerStatus>[]

/** A condition before times and generations are filled in. */
export interface ConditionDraft {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason?: string
  readonly message?: string
  /** Absent: the pod's. */
  readonly observedGeneration?: number
}

/** Go's way of printing a list of strings, which these messages carry. */
const goList = (names: readonly string[]) => `[${names.join(' ')}]`

function notAll(type: string, reason: string, groups: readonly (readonly [label: string, names: readonly string[]])[]): ConditionDraft | undefined {
  const parts = groups.filter(([, names]) => names.length > 0).map(([label, names]) => `containers with ${label} status: ${goList(names)}`)
  return parts.length > 0 ? { type, status: 'False', reason, message: parts.join(', ') } : undefined
}

/** ContainersReady, with the names of the containers that are not. */
export function containersReadyCondition(pod: FrozenPod, statuses: Statuses, phase: string): ConditionDraft {
  const type = 'ContainersReady'
  const statusOf = statusFinder(statuses)
  const names = [...(pod.spec.initContainers ?? []).filter(isRestartableInitContainer), ...pod.spec.containers].map((container) => container.name)
  const unknown = names.filter((name) => !statusOf(name))
  const unready = names.filter((name) => statusOf(name)?.ready === false)
  if (phase === 'Succeeded' && unknown.length === 0) return { type, status: 'False', reason: 'PodCompleted' }
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' }
  return (
    notAll(type, 'ContainersNotReady', [
      ['unknown', unknown],
      ['unready', unready],
    ]) ?? { type, status: 'True' }
  )
}

/** True when the containers are ready and every readiness gate is. */
export function readyCondition(pod: FrozenPod, containersReady: ConditionDraft, conditions: readonly Frozen<PodCondition>[]): ConditionDraft {
  if (containersReady.status !== 'True') return { ...containersReady, type: 'Ready' }
  const messages = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = conditions.find((candidate) => candidate.type === conditionType)
    if (!condition) return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`]
    return condition.status === 'True' ? [] : [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`]
  })
  return messages.length > 0
    ? { type: 'Ready', status: 'False', reason: 'ReadinessGatesNotReady', message: messages.join(', ') }
    : { type: 'Ready', status: 'True' }
}

/** Initialized, with the names of the init containers that are still to end. */
export function initializedCondition(pod: FrozenPod, statuses: Statuses, phase: string, before: readonly Frozen<PodCondition>[] = []): ConditionDraft {
  const type = 'Initialized'
  const statusOf = statusFinder(statuses)
  const containers = pod.spec.initContainers ?? []
  const unknown = containers.filter((container) => !statusOf(container.name)).map((container) => container.name)
  const incomplete = containers
    .filter((container) => {
      const status = statusOf(container.name)
      return status && !(isRestartableInitContainer(container) ? status.started : status.ready)
    })
    .map((container) => container.name)
  if (phase === 'Succeeded' && unknown.length === 0) return { type, status: 'True', reason: 'PodCompleted' }
  // Sidecars may restart later: a pod whose regular containers once ran stays initialized.
  const started = pod.spec.containers.some((container) => {
    const status = statusOf(container.name)
    return status?.started || status?.lastState?.terminated || status?.state?.running || status?.state?.terminated
  })
  // An initialized pod stays initialized, also while all its containers restart.
  if (started || before.some((condition) => condition.type === type && condition.status === 'True')) return { type, status: 'True' }
  return (
    notAll(type, 'ContainersNotInitialized', [
      ['unknown', unknown],
      ['incomplete', incomplete],
    ]) ?? { type, status: 'True' }
  )
}

export function readyToStartContainersCondition(hasSandbox: boolean): ConditionDraft {
  return { type: 'PodReadyToStartContainers', status: hasSandbox ? 'True' : 'False' }
}
