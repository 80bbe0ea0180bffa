/** What an update changed, as far as scheduling cares (L3), as bits of `actions`. Upstream: pkg/scheduler/framework/events.go (v1.36). */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { actions } from './framework/clusterEvent.ts'

/** 0: no relevant change; heartbeats make no pod schedulable. */
export function nodeUpdateAction(old: Frozen<Node>, node: Frozen<Node>): number {
  let changed = 0
  if (!same(old.status?.allocatable, node.status?.allocatable)) changed |= actions.UpdateNodeAllocatable
  if (!same(old.metadata.labels, node.metadata.labels)) changed |= actions.UpdateNodeLabel
  if (!same(old.spec?.taints, node.spec?.taints) || (old.spec?.unschedulable && !node.spec?.unschedulable)) changed |= actions.UpdateNodeTaint
  if (conditionStates(old) !== conditionStates(node)) changed |= actions.UpdateNodeCondition
  if (!same(old.metadata.annotations, node.metadata.annotations)) changed |= actions.UpdateNodeAnnotation
  if (!same(old.status?.declaredFeatures, node.status?.declaredFeatures)) changed |= actions.UpdateNodeDeclaredFeature
  return changed
}

/** `UpdatePodOther` where something else changed: that tells only plugins that registered for any update. */
export function podUpdateAction(old: Frozen<Pod>, pod: Frozen<Pod>): number {
  let changed = 0
  if (!same(old.metadata.labels, pod.metadata.labels)) changed |= actions.UpdatePodLabel
  if (scaledDown(old, pod)) changed |= actions.UpdatePodScaleDown
  if (old.spec.schedulingGates?.length && !pod.spec.schedulingGates?.length) changed |= actions.UpdatePodSchedulingGatesEliminated
  if (old.spec.tolerations?.length !== pod.spec.tolerations?.length) changed |= actions.UpdatePodToleration
  const claims = ({ status }: Frozen<Pod>) => [status?.resourceClaimStatuses, status?.extendedResourceClaimStatus]
  if (!same(claims(old), claims(pod))) changed |= actions.UpdatePodGeneratedResourceClaim
  return changed || actions.UpdatePodOther
}

function scaledDown(old: Frozen<Pod>, pod: Frozen<Pod>): boolean {
  if (old.metadata.generation === pod.metadata.generation && old.status === pod.status) return false
  const before = podRequests(old, { useStatusResources: true })
  const after = podRequests(pod, { useStatusResources: true })
  return Object.keys(before).some((name) => (after[name] ?? 0) < (before[name] ?? 0))
}

function conditionStates(node: Frozen<Node>): string {
  let text = ''
  for (const { type, status } of node.status?.conditions ?? []) text += `${type}=${status},`
  return text
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}
