/** Preemption tries its ideas on a plugin's state that can count one pod more or less on a node (L3). */
import type { StateData, StateKey } from '../../framework/cycleState.ts'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import type { SchedulerPlugin } from '../../framework/plugin.ts'
import type { PodInfo } from '../../framework/podInfo.ts'

export interface TriesPods extends StateData {
  /** Counts a pod on the node as if it ran there (1), or no longer (-1). */
  tryPod(pod: PodInfo, node: NodeInfo, by: 1 | -1): void
}

/** The two extension points of a plugin with such a state. */
export function tryPods(key: StateKey<TriesPods>): Required<Pick<SchedulerPlugin, 'addPod' | 'removePod'>> {
  return {
    addPod: (state, _pod, added, node) => {
      state.read(key)?.tryPod(added, node, 1)
      return undefined
    },
    removePod: (state, _pod, removed, node) => {
      state.read(key)?.tryPod(removed, node, -1)
      return undefined
    },
  }
}
