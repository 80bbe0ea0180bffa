/** Keeps pods with scheduling gates out of the queue (L3). Upstream: plugins/schedulinggates. */
import { actions, on } from '../framework/clusterEvent.ts'
import { definePlugin } from '../framework/plugin.ts'
import { unresolvable } from '../framework/status.ts'

export const schedulingGates = definePlugin('SchedulingGates', () => ({
  requeueOn: [on('TargetPod', actions.UpdatePodSchedulingGatesEliminated)],
  preEnqueue: (pod) => {
    const gates = pod.spec.schedulingGates ?? []
    return gates.length === 0 ? undefined : unresolvable(`waiting for scheduling gates: [${gates.map((gate) => gate.name).join(' ')}]`)
  },
}))
