/**
 * Checks an eviction against the pod's disruption budgets (L3), and subtracts it from disruptionsAllowed.
 * Upstream: checkAndDecrement and getPodDisruptionBudgets of pkg/registry/core/pod/storage/eviction.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '#api/gen/types/policy.v1'
import { isPodReady } from '#api/helpers/pods'
import { findCondition, setStatusCondition } from '#api/machinery/conditions'
import { FieldPath } from '#api/machinery/fieldPath'
import { selectorOf, validateLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { forbidden, notFound, StatusError } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { noAdmission } from '../../admission/chain.ts'
import { updateObject } from '../../registry/update.ts'
import { type Scope, writeContext } from '../scope.ts'

const budgets = { group: 'policy', resource: 'poddisruptionbudgets' }
/** Bound of evictions that the budget's controller has not observed yet: beyond it, evictions wait. */
const mostDisruptedPods = 2000
/** The field manager of upstream's loopback client, which writes the budget. */
const serverManager = 'kube-apiserver'

/** The one budget of the pod, if any. @throws StatusError 500 when there are several */
export function budgetOf({ deps, info }: Scope, pod: Frozen<Pod>): Frozen<PodDisruptionBudget> | undefined {
  const all = deps.registry.reader.list<KubeObject>(budgets, info.namespace) as unknown as readonly Frozen<PodDisruptionBudget>[]
  const [budget, ...others] = all.filter((one) => covers(one, pod))
  if (others.length > 0) throw new StatusError('', 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.')
  return budget
}

/** Without a selector, or with one that is not valid, a budget covers no pod. */
function covers({ spec }: Frozen<PodDisruptionBudget>, pod: Frozen<Pod>): boolean {
  if (spec?.selector === undefined || validateLabelSelector(spec.selector, FieldPath.of('spec', 'selector')).length > 0) return false
  return selectorOf(spec.selector).matches(pod.metadata.labels)
}

/** A pod that is not ready does not count towards the budget's healthy ones: it may be evicted if the budget's policy is AlwaysAllow, or if enough others are healthy. */
export function mayGoUnhealthy({ spec, status }: Frozen<PodDisruptionBudget>, pod: Frozen<Pod>): boolean {
  if (isPodReady(pod)) return false
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {}
  return currentHealthy >= desiredHealthy && desiredHealthy > 0
}

/** Subtracts one disruption from the budget; a conflict is retried on its newest state. @throws StatusError TooManyRequests, Forbidden */
export async function claimDisruption(scope: Scope, name: string, podName: string, dryRun: boolean): Promise<void> {
  const { deps } = scope
  const served = deps.registry.served('policy', 'v1', 'poddisruptionbudgets')
  if (!served) throw notFound(budgets, name)
  const context = { ...writeContext(scope, 'CreateOptions'), served, subresource: 'status', dryRun, fieldManager: serverManager }
  await updateObject({ ...deps.writer, admission: noAdmission }, context, {
    name,
    transform: (current) => {
      if (!current) throw notFound(budgets, name)
      return takeOne(deepCopy<KubeObject>(current) as unknown as PodDisruptionBudget, podName, deps.clock.now()) as unknown as KubeObject
    },
  })
}

function takeOne(budget: PodDisruptionBudget, podName: string, nowMs: number): PodDisruptionBudget {
  const { name = '', generation = 0 } = budget.metadata
  const { status } = budget
  if (!status || (status.observedGeneration ?? 0) < generation) throw stillProcessed(name)
  const allowed = status.disruptionsAllowed ?? 0
  const refuse = (why: string) => forbidden({ group: 'policy', resource: 'poddisruptionbudget' }, name, why)
  if (allowed < 0) throw refuse('pdb disruptions allowed is negative')
  if (Object.keys(status.disruptedPods ?? {}).length > mostDisruptedPods)
    throw refuse('DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  if (allowed === 0) throw tooMany(whyNone(name, status))
  status.disruptionsAllowed = allowed - 1
  if (allowed === 1) {
    status.conditions ??= []
    const none = { type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods', message: '', observedGeneration: status.observedGeneration }
    setStatusCondition(status.conditions, none, nowMs)
  }
  status.disruptedPods = { ...status.disruptedPods, [podName]: formatTime(nowMs) }
  return budget
}

function whyNone(name: string, { conditions, currentHealthy = 0, desiredHealthy = 0 }: PodDisruptionBudgetStatus): string {
  const condition = findCondition(conditions, 'DisruptionAllowed')
  const failed = condition?.status === 'False' && condition.message !== '' ? condition : undefined
  // While the controller fails to sync, its numbers are not reliable.
  if (failed?.reason === 'SyncFailed') return `The disruption budget ${name} does not allow evicting pods currently because it failed sync: ${failed.message}`
  if (currentHealthy <= desiredHealthy) return `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`
  const why = failed ? ` (${failed.reason}): ${failed.message}` : ''
  return `The disruption budget ${name} does not allow evicting pods currently${why}`
}

/** The answer while the budget's controller has not observed the newest spec. */
export function stillProcessed(name: string): StatusError {
  return tooMany(`The disruption budget ${name} is still being processed by the server.`, 10)
}

function tooMany(message: string, retryAfterSeconds?: number): StatusError {
  return new StatusError('TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    details: { causes: [{ reason: 'DisruptionBudget', message }], ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) },
  })
}
