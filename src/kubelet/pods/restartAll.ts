/**
 * Restarts every container of a pod in its place when one of them exits in a way that its rules say so of (L3): all are stopped and taken out of the
 * runtime, the sandbox stays, and the pod starts from its first init container again. Upstream: kubelet/container/helpers.go ShouldAllContainersRestart,
 * AllContainersRestartCleanedUp; kubelet/status/generate.go GenerateAllContainersRestartingCondition (v1.36); KEP-5532.
 */
import type { PodStatus } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletContext } from '../context.ts'
import { type ContainerRecord, findContainer, type PodRuntimeStatus, sandboxIPs } from '../runtime/podRuntimeStatus.ts'
import { type FrozenPod, isTerminalPhase, matchingRestartRule } from './containers.ts'
import { killContainers } from './killing.ts'
import type { ConditionDraft } from './podConditions.ts'

const conditionType = 'AllContainersRestarting'
const action = 'RestartAllContainers'
/** The grace period of the pod is for its end: a restart is meant to be quick. */
const graceSeconds = 2

const restartable = (pod: FrozenPod) => [...(pod.spec.initContainers ?? []), ...pod.spec.containers]

/** Whether some container can ask for it. */
export function mayRestartAll(pod: FrozenPod): boolean {
  return restartable(pod).some((container) => container.restartPolicyRules?.some((rule) => rule.action === action))
}

/** The container whose exit asks for it. */
export function restartAllSource(pod: FrozenPod, status: PodRuntimeStatus): ContainerRecord | undefined {
  for (const container of restartable(pod)) {
    const record = findContainer(status, container.name)
    if (record?.state === 'exited' && matchingRestartRule(container, record.exitCode)?.action === action) return record
  }
  return undefined
}

/** Containers that are still to go. A restart that was begun goes on, also under another kubelet. */
export function containersToReset(pod: FrozenPod, status: PodRuntimeStatus, reported: Frozen<PodStatus>): readonly ContainerRecord[] {
  if (!mayRestartAll(pod) || isTerminalPhase(reported.phase)) return []
  const begun = findCondition(reported.conditions, conditionType)?.status === 'True'
  if (!begun && !restartAllSource(pod, status)) return []
  const names = new Set(restartable(pod).map(({ name }) => name))
  return status.containers.filter(({ name }) => names.has(name))
}

export function allContainersRestartingCondition(phase: string, resetting: boolean): ConditionDraft {
  if (isTerminalPhase(phase)) return { type: conditionType, status: 'False', reason: phase === 'Failed' ? 'PodFailed' : 'PodCompleted' }
  if (!resetting) return { type: conditionType, status: 'False' }
  return { type: conditionType, status: 'True', reason: 'RestartAllContainersStarted', message: 'container exited with restart policy rule' }
}

/** Stops what runs of them. */
export async function stopForReset(context: KubeletContext, pod: FrozenPod, status: PodRuntimeStatus, signal: AbortSignal): Promise<void> {
  const names = new Set(restartable(pod).map(({ name }) => name))
  const containers = status.containers.filter(({ name }) => names.has(name))
  await killContainers(context, pod, { ...status, containers }, sandboxIPs(status)[0] ?? '', { graceSeconds, signal })
}
