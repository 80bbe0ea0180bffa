/**
 * Computes a Deployment's status (L3). Pure. Upstream: pkg/controller/deployment/{sync,progress}.go (v1.36).
 */
import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from '#api/gen/types/apps.v1'
import { findCondition, withoutCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { formatTime, parseTime } from '#base/time'
import { availableReplicas, maxUnavailable, replicasOf, totalReplicas } from './plan.ts'

type Sets = readonly Frozen<ReplicaSet>[]
const maxInt32 = 2_147_483_647

export const hasProgressDeadline = (deployment: Frozen<Deployment>): boolean => {
  const { progressDeadlineSeconds } = deployment.spec
  return progressDeadlineSeconds !== undefined && progressDeadlineSeconds !== maxInt32
}

/** Sets a condition unless status and reason are what they were; moves it to the end, as upstream. */
export function withCondition(
  conditions: readonly DeploymentCondition[],
  wanted: Omit<DeploymentCondition, 'lastTransitionTime' | 'lastUpdateTime'>,
  nowMs: number,
) {
  const there = findCondition(conditions, wanted.type)
  if (there && there.status === wanted.status && there.reason === wanted.reason) return conditions
  const now = formatTime(nowMs)
  const lastTransitionTime = there?.status === wanted.status ? there.lastTransitionTime : now
  return [...withoutCondition(conditions, wanted.type), { ...wanted, lastUpdateTime: now, lastTransitionTime }]
}

/** Counts and the Available condition. */
export function deploymentStatus(deployment: Frozen<Deployment>, all: Sets, newSet: Frozen<ReplicaSet> | undefined, nowMs: number): DeploymentStatus {
  const available = availableReplicas(all)
  const sum = (of: (set: Frozen<ReplicaSet>) => number | undefined) => all.reduce((total, set) => total + (of(set) ?? 0), 0)
  const enough = available >= replicasOf(deployment) - maxUnavailable(deployment)
  const counts = {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sum((set) => set.status?.replicas),
    updatedReplicas: newSet?.status?.replicas ?? 0,
    readyReplicas: sum((set) => set.status?.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, totalReplicas(all) - available),
  }
  const collisionCount = deployment.status?.collisionCount
  return {
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    terminatingReplicas: sum((set) => set.status?.terminatingReplicas),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    conditions: [
      ...withCondition(
        (deployment.status?.conditions ?? []) as readonly DeploymentCondition[],
        enough
          ? { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: 'Deployment has minimum availability.' }
          : { type: 'Available', status: 'False', reason: 'MinimumReplicasUnavailable', message: 'Deployment does not have minimum availability.' },
        nowMs,
      ),
    ],
  }
}

export function isComplete(deployment: Frozen<Deployment>, status: Frozen<DeploymentStatus>): boolean {
  const wanted = replicasOf(deployment)
  return (
    (status.updatedReplicas ?? 0) === wanted &&
    (status.replicas ?? 0) === wanted &&
    (status.availableReplicas ?? 0) === wanted &&
    (status.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  )
}

function isProgressing(before: Frozen<DeploymentStatus> | undefined, after: Frozen<DeploymentStatus>): boolean {
  const old = (status: Frozen<DeploymentStatus> | undefined) => (status?.replicas ?? 0) - (status?.updatedReplicas ?? 0)
  return (
    (after.updatedReplicas ?? 0) > (before?.updatedReplicas ?? 0) ||
    old(after) < old(before) ||
    (after.readyReplicas ?? 0) > (before?.readyReplicas ?? 0) ||
    (after.availableReplicas ?? 0) > (before?.availableReplicas ?? 0)
  )
}

function hasTimedOut(deployment: Frozen<Deployment>, status: Frozen<DeploymentStatus>, nowMs: number): boolean {
  const condition = findCondition(status.conditions, 'Progressing')
  if (!condition || condition.reason === 'NewReplicaSetAvailable') return false
  if (condition.reason === 'ProgressDeadlineExceeded') return true
  return (parseTime(condition.lastUpdateTime ?? '') ?? nowMs) + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000 < nowMs
}

/** The status during a rollout: counts and the Progressing condition. */
export function rolloutStatus(deployment: Frozen<Deployment>, all: Sets, newSet: Frozen<ReplicaSet> | undefined, nowMs: number): DeploymentStatus {
  const status = deploymentStatus(deployment, all, newSet, nowMs)
  let conditions: readonly DeploymentCondition[] = status.conditions ?? []
  const subject = newSet ? `ReplicaSet "${newSet.metadata.name}"` : `Deployment "${deployment.metadata.name}"`
  const current = findCondition((deployment.status?.conditions ?? []) as readonly DeploymentCondition[], 'Progressing')
  if (!hasProgressDeadline(deployment)) conditions = withoutCondition(conditions, 'Progressing')
  const settled = (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && current?.reason === 'NewReplicaSetAvailable'
  if (hasProgressDeadline(deployment) && !settled) {
    if (isComplete(deployment, status)) {
      const message = `${subject} has successfully progressed.`
      conditions = withCondition(conditions, { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message }, nowMs)
    } else if (isProgressing(deployment.status, status)) {
      const now = formatTime(nowMs)
      // Each step renews lastUpdateTime, which the deadline counts from.
      const lastTransitionTime = current?.status === 'True' ? current.lastTransitionTime : now
      const condition = { type: 'Progressing', status: 'True', reason: 'ReplicaSetUpdated', message: `${subject} is progressing.` }
      conditions = [...withoutCondition(conditions, 'Progressing'), { ...condition, lastUpdateTime: now, lastTransitionTime }]
    } else if (hasTimedOut(deployment, status, nowMs)) {
      const message = `${subject} has timed out progressing.`
      conditions = withCondition(conditions, { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message }, nowMs)
    }
  }
  const failure = replicaFailure(all, newSet)
  conditions = failure ? withCondition(conditions, failure, nowMs) : withoutCondition(conditions, 'ReplicaFailure')
  return { ...status, conditions: [...conditions] }
}

function replicaFailure(all: Sets, newSet: Frozen<ReplicaSet> | undefined) {
  for (const set of newSet ? [newSet, ...all] : all) {
    const condition = findCondition(set.status?.conditions, 'ReplicaFailure')
    if (condition) return { type: 'ReplicaFailure', status: condition.status, reason: condition.reason, message: condition.message }
  }
  return undefined
}

/** When a rollout that does not move must be looked at again, for its deadline. */
export function msUntilDeadline(deployment: Frozen<Deployment>, status: Frozen<DeploymentStatus>, nowMs: number): number | undefined {
  const current = findCondition(deployment.status?.conditions, 'Progressing')
  if (!hasProgressDeadline(deployment) || !current) return undefined
  if (isComplete(deployment, status) || current.reason === 'ProgressDeadlineExceeded') return undefined
  const dueMs = (parseTime(current.lastUpdateTime ?? '') ?? nowMs) + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000
  // One second more: condition times are cut to seconds.
  return Math.max(0, dueMs - nowMs) + 1000
}
