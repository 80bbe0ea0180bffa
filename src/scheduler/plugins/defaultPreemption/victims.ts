/**
 * Which pods have to go from a node, and which node to take (L3). Pure.
 * Upstream: plugins/defaultpreemption SelectVictimsOnNode, filterPodsWithPDBViolation; framework/preemption pickOneNodeForPreemption.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { PodDisruptionBudget } from '#api/gen/types/policy.v1'
import { podCondition } from '#api/helpers/pods'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { greatest, least } from '#base/extremes'
import { parseTime } from '#base/time'
import type { CycleState } from '../../framework/cycleState.ts'
import type { Handle, PreemptionCandidate } from '../../framework/handle.ts'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import { type Refusal, unresolvable } from '../../framework/status.ts'

export type Candidate = PreemptionCandidate

const noVictims = unresolvable('No preemption victims found for incoming pod')

/**
 * The fewest and least important pods without which the pod fits: all of lower priority are taken away, and put back one by one, the most
 * important first, as long as the pod still fits. Pods whose disruption budget would break are tried first.
 * @param state and node: copies, which are changed
 */
export function selectVictims(
  handle: Handle,
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  budgets: readonly Frozen<PodDisruptionBudget>[],
): Candidate | Refusal {
  const possible = [...node.pods.values()].filter((other) => other.priority < pod.priority)
  if (possible.length === 0) return noVictims
  const remove = (other: PodInfo) => {
    node.remove(other.key)
    insist(handle.removePod(state, pod, other, node))
  }
  for (const other of possible) remove(other)
  const refusal = handle.filterWithNominated(state, pod, node)
  if (refusal) return refusal
  const nowMs = handle.clock.now()
  possible.sort((a, b) => byImportance(a, b, nowMs))
  const victims: PodInfo[] = []
  const mustGo = (other: PodInfo): boolean => {
    node.add(other)
    insist(handle.addPod(state, pod, other, node))
    if (!handle.filterWithNominated(state, pod, node)) return false
    remove(other)
    victims.push(other)
    return true
  }
  const { violating, others } = splitByBudgets(possible, budgets)
  const budgetViolations = violating.filter(mustGo).length
  others.forEach(mustGo)
  if (victims.length === 0) return noVictims
  return { nodeName: node.name, victims: victims.sort((a, b) => byImportance(a, b, nowMs)), budgetViolations }
}

function insist(refusal: Refusal | undefined): void {
  if (refusal) throw new Error(refusal.reasons.join(', '))
}

/** Higher priority first, then who runs longer. */
function byImportance(a: PodInfo, b: PodInfo, nowMs: number): number {
  return b.priority - a.priority || startedMs(a, nowMs) - startedMs(b, nowMs)
}

function startedMs({ pod }: PodInfo, nowMs: number): number {
  return (pod.status?.startTime ? parseTime(pod.status.startTime) : undefined) ?? nowMs
}

/** Counts down each budget's allowance; a pod below zero of any of its budgets breaks it. Keeps the order. */
export function splitByBudgets(pods: readonly PodInfo[], budgets: readonly Frozen<PodDisruptionBudget>[]): { violating: PodInfo[]; others: PodInfo[] } {
  const allowed = budgets.map((budget) => ({ budget, selector: selectorOf(budget.spec?.selector), left: budget.status?.disruptionsAllowed ?? 0 }))
  const violating: PodInfo[] = []
  const others: PodInfo[] = []
  for (const info of pods) {
    const { namespace, name = '', labels } = info.pod.metadata
    let breaks = false
    for (const entry of Object.keys(labels ?? {}).length === 0 ? [] : allowed) {
      const { budget, selector } = entry
      if (budget.metadata.namespace !== namespace || selector.isEmpty || !selector.matches(labels)) continue
      // The API server has counted it already.
      if (Object.hasOwn(budget.status?.disruptedPods ?? {}, name)) continue
      entry.left--
      if (entry.left < 0) breaks = true
    }
    ;(breaks ? violating : others).push(info)
  }
  return { violating, others }
}

/** The node where least is lost: budgets, the highest priority, the sum of priorities, how many, and then the youngest. */
export function pickCandidate(candidates: readonly Candidate[], nowMs: number): Candidate | undefined {
  const criteria: readonly ((candidate: Candidate) => number)[] = [
    ({ budgetViolations }) => -budgetViolations,
    ({ victims }) => -(victims[0]?.priority ?? 0),
    ({ victims }) => -victims.reduce((sum, { priority }) => sum + priority + 2 ** 31, 0),
    ({ victims }) => -victims.length,
    ({ victims }) => earliestStart(victims, nowMs),
  ]
  let left = candidates
  for (const score of criteria) {
    if (left.length <= 1) break
    const best = greatest(left.map(score))
    left = left.filter((candidate) => score(candidate) === best)
  }
  return left[0]
}

/** The earliest start among the victims with the highest priority. */
function earliestStart(victims: readonly PodInfo[], nowMs: number): number {
  const highest = greatest(victims.map(({ priority }) => priority))
  return least(victims.filter(({ priority }) => priority === highest).map((victim) => startedMs(victim, nowMs)))
}

export function isTerminatingByPreemption(pod: Frozen<Pod>): boolean {
  const condition = podCondition(pod, 'DisruptionTarget')
  return pod.metadata.deletionTimestamp !== undefined && condition?.status === 'True' && condition.reason === 'PreemptionByScheduler'
}
