/**
 * In-place resize (L3, pure): which running containers get other limits, which must restart for it, and why a resize has to wait.
 * Upstream: kubelet/allocation, kuberuntime_manager.go computePodResizeAction (v1.36).
 */
import type { ResourceRequirements } from '#api/gen/types/core.v1'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import type { ContainerRecord, PodRuntimeStatus } from '../runtime/podRuntimeStatus.ts'
import { findContainer } from '../runtime/podRuntimeStatus.ts'
import { type FrozenContainer, type FrozenPod, isRestartableInitContainer, isTerminalPhase } from './containers.ts'
import type { ConditionDraft } from './podConditions.ts'
import { milliUnits, quantity } from './quantities.ts'

export type Resources = Frozen<ResourceRequirements>

export interface ContainerResize {
  readonly container: FrozenContainer
  readonly record: ContainerRecord
  readonly resources: Resources
}

export interface ResizePlan {
  readonly update: readonly ContainerResize[]
  readonly restart: readonly ContainerResize[]
  /** Set when the resize cannot be done now. */
  readonly pending?: ConditionDraft | undefined
}

const resized = ['cpu', 'memory'] as const

/** Which of cpu and memory differ between what a container has and what it should have. */
function changedResources(before: Resources | undefined, after: Resources | undefined): (typeof resized)[number][] {
  return resized.filter((name) => {
    const read = name === 'cpu' ? milliUnits : quantity
    return read(before?.requests?.[name]) !== read(after?.requests?.[name]) || read(before?.limits?.[name]) !== read(after?.limits?.[name])
  })
}

/**
 * @param applied what a running container has; undefined when that is unknown, which counts as what the spec says.
 * @param others the other pods of the node.
 */
export function planResize(
  pod: FrozenPod,
  status: PodRuntimeStatus,
  applied: (containerId: string) => Resources | undefined,
  others: readonly FrozenPod[],
  allocatable: Readonly<Record<string, string>>,
): ResizePlan {
  const candidates = [...(pod.spec.initContainers ?? []).filter(isRestartableInitContainer), ...pod.spec.containers].flatMap((container) => {
    const record = findContainer(status, container.name)
    const before = record?.state === 'running' ? applied(record.id) : undefined
    if (!record || !before) return []
    const changed = changedResources(before, container.resources)
    return changed.length > 0 ? [{ container, record, resources: container.resources ?? {}, changed }] : []
  })
  if (candidates.length === 0) return { update: [], restart: [] }
  const pending = whyNot(pod, others, allocatable)
  if (pending) return { update: [], restart: [], pending }
  const mustRestart = ({ container, changed }: (typeof candidates)[number]) =>
    changed.some((name) => container.resizePolicy?.find((policy) => policy.resourceName === name)?.restartPolicy === 'RestartContainer')
  return { update: candidates.filter((candidate) => !mustRestart(candidate)), restart: candidates.filter(mustRestart) }
}

function whyNot(pod: FrozenPod, others: readonly FrozenPod[], allocatable: Readonly<Record<string, string>>): ConditionDraft | undefined {
  const capacity = amountsOf(allocatable)
  const wanted = podRequests(pod)
  const pending = (reason: 'Infeasible' | 'Deferred', message: string): ConditionDraft => ({ type: 'PodResizePending', status: 'True', reason, message })
  for (const name of resized) {
    const requested = wanted[name] ?? 0
    const limit = capacity[name] ?? 0
    if (requested > limit) return pending('Infeasible', `Node didn't have enough capacity: ${name}, requested: ${requested}, capacity: ${limit}`)
    const used = others
      .filter((other) => other.metadata.uid !== pod.metadata.uid && !isTerminalPhase(other.status?.phase))
      .reduce((sum, other) => sum + (podRequests(other)[name] ?? 0), 0)
    if (requested + used > limit)
      return pending('Deferred', `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${limit}`)
  }
  return undefined
}
