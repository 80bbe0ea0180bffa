/** Why a PodDisruptionBudget allows no eviction (L2). */
import type { Pod } from '#api/gen/types/core.v1'
import type { PodDisruptionBudget } from '#api/gen/types/policy.v1'
import { isPodActive } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'
import { controllerSilence } from './controllerSilence.ts'
import type { View } from './view.ts'
import { causesOfPods } from './workloadPods.ts'

export async function explainBudget(budget: Frozen<PodDisruptionBudget>, view: View): Promise<Explanation> {
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0, expectedPods = 0, observedGeneration } = budget.status ?? {}
  const state = `${disruptionsAllowed} disruptions allowed, ${currentHealthy} of ${expectedPods} pods healthy, ${desiredHealthy} needed`
  const silence = controllerSilence(budget, observedGeneration)
  if (silence) return { state, causes: [silence] }
  return { state, causes: disruptionsAllowed > 0 ? [] : await causesOf(budget, view) }
}

async function causesOf(budget: Frozen<PodDisruptionBudget>, view: View): Promise<readonly Cause[]> {
  const { namespace, name = '' } = budget.metadata
  const { currentHealthy = 0, desiredHealthy = 0, expectedPods = 0, conditions } = budget.status ?? {}
  const { minAvailable, maxUnavailable } = budget.spec ?? {}
  const limit = maxUnavailable === undefined ? `minAvailable ${minAvailable}` : `maxUnavailable ${maxUnavailable}`
  const condition = findCondition(conditions, 'DisruptionAllowed')
  const next = kubectl(namespace, 'describe', 'pdb', name)
  if (condition?.reason === 'SyncFailed')
    return [{ text: `its controller cannot count the pods: ${condition.message}`, evidence: conditionText({ ...condition, message: '' }), next }]
  if (expectedPods === 0)
    return [
      { text: 'its selector selects no pod, so it protects none', evidence: 'status.expectedPods 0', next: kubectl(namespace, 'get', 'pods', '--show-labels') },
    ]
  if (desiredHealthy >= expectedPods)
    return [
      {
        text: `it never allows an eviction: ${limit} needs all ${expectedPods} pods healthy; run more replicas, or lower it`,
        evidence: `spec.${limit}, status.desiredHealthy ${desiredHealthy}, expectedPods ${expectedPods}`,
        next: kubectl(namespace, 'edit', 'pdb', name),
      },
    ]
  const pods = await view.list<Pod>('pods', namespace, { labelSelector: selectorOf(budget.spec?.selector).toString() })
  const [cause] = await causesOfPods((pods ?? []).filter(isPodActive), view)
  const evidence = `status.currentHealthy ${currentHealthy}, desiredHealthy ${desiredHealthy}`
  return [
    { text: `${currentHealthy} pods are healthy, and ${desiredHealthy} must stay so${cause ? `; ${cause.text}` : ''}`, evidence, next: cause?.next ?? next },
  ]
}
