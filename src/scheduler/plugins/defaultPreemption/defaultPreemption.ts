/**
 * Makes room for a pod that fits nowhere by taking pods of lower priority from a node (L3). The node is nominated at once; the victims are taken
 * away in the background, and until that is done the pod stays out of the queue.
 * Upstream: plugins/defaultpreemption, framework/preemption (v1.36).
 */
import { podDisruptionBudgets } from '#client/builtIn'
import { actions, on } from '../../framework/clusterEvent.ts'
import type { CycleState } from '../../framework/cycleState.ts'
import type { Handle } from '../../framework/handle.ts'
import { NodeRefusals } from '../../framework/nodeRefusals.ts'
import { definePlugin, type PostFilterResult } from '../../framework/plugin.ts'
import type { PluginArgs } from '../../framework/pluginArgs.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import { fitMessage, type Refusal, unresolvable, unschedulable } from '../../framework/status.ts'
import { createEvictor } from './evictor.ts'
import { type Candidate, isTerminatingByPreemption, pickCandidate, selectVictims } from './victims.ts'

const name = 'DefaultPreemption'
const stillRunning = unresolvable('waiting for the preemption for this pod to be finished')
const notHelpful = unresolvable('Preemption is not helpful for scheduling')

export const defaultPreemption = definePlugin(name, (args, handle) => {
  const budgets = handle.lister(podDisruptionBudgets)
  const evictor = createEvictor(handle, name)
  const attempts = handle.metrics.counter({ name: 'scheduler_preemption_attempts_total', help: 'Times that making room for a pod was tried.' })
  return {
    // The pods that it holds back were refused by others too, whose events bring them back; then it is asked again.
    requeueOn: [on('AssignedPod', actions.Delete, () => false)],
    preEnqueue: (pod) => (evictor.isRunning(pod.metadata.uid ?? '') ? stillRunning : undefined),
    postFilter: async (state, pod, refusals) => {
      attempts.inc()
      const result = await preempt({ args, handle, budgets: budgets.list(), evict: evictor.evict }, state, pod, refusals)
      if (!result.refusal) return result
      const { code, reasons } = result.refusal
      return { ...result, refusal: { code, reasons: reasons.map((reason) => `preemption: ${reason}`) } }
    },
  }
})

interface Preemption {
  readonly args: PluginArgs['DefaultPreemption']
  readonly handle: Handle
  readonly budgets: Parameters<typeof selectVictims>[4]
  readonly evict: (pod: PodInfo, candidate: Candidate) => void
}

async function preempt(preemption: Preemption, state: CycleState, pod: PodInfo, refusals: NodeRefusals): Promise<PostFilterResult> {
  const { handle } = preemption
  const ineligible = whyNotEligible(handle, pod, refusals)
  if (ineligible) return { refusal: unschedulable(ineligible) }
  const { candidates, refused } = findCandidates(preemption, state, pod, refusals)
  if (candidates.length === 0) {
    const totalNodes = handle.snapshot.nodes.length
    return { nominatedNodeName: '', refusal: unschedulable(fitMessage({ totalNodes, refusals: refused.forMessage(totalNodes) })) }
  }
  const accepted = await handle.filterPreemption(pod, candidates)
  const best = pickCandidate(accepted, handle.clock.now())
  if (!best) return { refusal: unschedulable('no candidate node for preemption') }
  preemption.evict(pod, best)
  return { nominatedNodeName: best.nodeName }
}

/** A pod that must not preempt, or whose earlier victims are still being deleted. */
function whyNotEligible(handle: Handle, { pod, priority }: PodInfo, refusals: NodeRefusals): string | undefined {
  if (pod.spec.preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.'
  const nominated = pod.status?.nominatedNodeName
  if (!nominated || refusals.get(nominated).code === 'UnschedulableAndUnresolvable') return undefined
  for (const other of handle.snapshot.get(nominated)?.pods.values() ?? [])
    if (other.priority < priority && isTerminatingByPreemption(other.pod)) return 'not eligible due to a terminating pod on the nominated node.'
  return undefined
}

/** Tries nodes from a random one on, until there are enough candidates and at least one that breaks no disruption budget. */
function findCandidates({ args, handle, budgets }: Preemption, state: CycleState, pod: PodInfo, refusals: NodeRefusals) {
  const nodes = refusals.nodesWithCode('Unschedulable', handle.snapshot.nodes)
  const refused = new NodeRefusals(notHelpful)
  const candidates: Candidate[] = []
  const enough = Math.min(nodes.length, Math.max(args.minCandidateNodesAbsolute, Math.floor((nodes.length * args.minCandidateNodesPercentage) / 100)))
  const offset = nodes.length === 0 ? 0 : handle.random.int(nodes.length)
  let harmless = false
  for (let i = 0; i < nodes.length && !(harmless && candidates.length >= enough); i++) {
    const node = nodes[(offset + i) % nodes.length]
    if (!node) continue
    const found: Candidate | Refusal = selectVictims(handle, state.clone(), pod, node.clone(), budgets)
    if ('code' in found) refused.add(node.name, { refusal: found, plugin: name })
    else {
      candidates.push(found)
      harmless ||= found.budgetViolations === 0
    }
  }
  return { candidates, refused }
}
