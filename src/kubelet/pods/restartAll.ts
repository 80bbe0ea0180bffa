/**
 * Restarts every container of a pod in place when an exit matches a rule with action RestartAllContainers (L3): all are stopped and removed from the
 * runtime, the sandbox stays, and the pod starts from its first init container again. Upstream: kubelet/container/helpers.go ShouldAllContainersRestart,
 * AllContainersRestartCleanedUp; kubelet/status/generate.go GenerateAllContainersRestartingCondition (v1.36); KEP-5532.
 */
import type { PodStatus } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { greatest } from '#base/extremes'
import { type FrozenContainer, type FrozenPod, isTerminalPhase, matchingRestartRule } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import type { ConditionDraft } from '../core/podConditions.ts'
import { type ContainerRecord, findContainer, type PodRuntimeStatus, sandboxIPs } from '../core/podRuntimeStatus.ts'
import { killContainer } from './killing.ts'

const conditionType = 'AllContainersRestarting'
const action = 'RestartAllContainers'
/** Upstream's kubelet learns of an exit once a second: a pod whose containers end at once restarts no more often. */
const leastPeriodMs = 1_000

const restartable = (pod: FrozenPod) => [...(pod.spec.initContainers ?? []), ...pod.spec.containers]

/** Whether some container can ask for it. */
export function mayRestartAll(pod: FrozenPod): boolean {
  return restartable(pod).some((container) => container.restartPolicyRules?.some((rule) => rule.action === action))
}

const asksForIt = (container: FrozenContainer, record: ContainerRecord | undefined) =>
  record?.state === 'exited' && matchingRestartRule(container, record.exitCode)?.action === action

/** Whether a container's exit asks for it, or it was begun and is not over, perhaps under another kubelet. */
export function shouldAllContainersRestart(pod: FrozenPod, status: PodRuntimeStatus, reported: Frozen<PodStatus>): boolean {
  if (!mayRestartAll(pod)) return false
  if (findCondition(reported.conditions, conditionType)?.status === 'True') return true
  return restartable(pod).some((container) => asksForIt(container, findContainer(status, container.name)))
}

/**
 * Every container that is still to go, with all its earlier runs. First those that only suffer it, regular before init containers; then in the same order
 * those whose exits ask for it, so that a kubelet that starts meanwhile still sees why.
 */
export function containersToReset(pod: FrozenPod, status: PodRuntimeStatus, reported: Frozen<PodStatus>): ContainerRecord[] {
  if (isTerminalPhase(reported.phase) || !shouldAllContainersRestart(pod, status, reported)) return []
  const runsOf = (containers: readonly FrozenContainer[] | undefined, areSources: boolean) =>
    (containers ?? []).flatMap((container) =>
      status.containers.filter((record) => record.name === container.name && asksForIt(container, record) === areSources),
    )
  const { containers, initContainers } = pod.spec
  return [...runsOf(containers, false), ...runsOf(initContainers, false), ...runsOf(containers, true), ...runsOf(initContainers, true)]
}

export function allContainersRestartingCondition(phase: string, resetting: boolean): ConditionDraft {
  if (isTerminalPhase(phase)) return { type: conditionType, status: 'False', reason: phase === 'Failed' ? 'PodFailed' : 'PodCompleted' }
  if (!resetting) return { type: conditionType, status: 'False' }
  return { type: conditionType, status: 'True', reason: 'RestartAllContainersStarted', message: 'container exited with restart policy rule' }
}

/** Takes them out of the runtime one after another, without the hooks and the grace of a pod's end. Their logs stay. */
export async function resetContainers(context: KubeletContext, pod: FrozenPod, status: PodRuntimeStatus, records: readonly ContainerRecord[]): Promise<void> {
  const podIP = sandboxIPs(status)[0] ?? ''
  for (const record of records) {
    if (record.state !== 'exited') await killContainer(context, pod, record, podIP, { graceSeconds: 0, message: 'killing' })
    await context.runtime.removeContainer(record.id)
  }
}

/** Milliseconds until the next restart of them may begin. */
export function msUntilReset(records: readonly ContainerRecord[], nowMs: number): number {
  const newestMs = greatest(
    records.map(({ startedAtMs }) => startedAtMs),
    0,
  )
  return newestMs > nowMs ? 0 : Math.max(0, newestMs + leastPeriodMs - nowMs)
}
