/**
 * Runs every filter for every node (L3): a cycle stops at a node's first refusal, an explanation needs all of them. Changes nothing.
 */
import type { PluginReasons } from '#api/debug/scheduling'
import { messageOf } from '#base/messageOf'
import { CycleState } from '../framework/cycleState.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { SchedulerPlugin } from '../framework/plugin.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import type { Profile } from '../framework/profile.ts'
import type { Snapshot } from '../framework/snapshot.ts'
import { isRefusal } from '../framework/status.ts'

export interface Trial {
  /** Refusals before any node was evaluated; the filters of these plugins do not run. */
  readonly beforehand: readonly PluginReasons[]
  /** Names of the filters that PreFilter did not skip for the pod, in their order. */
  readonly filters: readonly string[]
  /** All who refuse the node. */
  refusalsOf(node: NodeInfo): readonly PluginReasons[]
}

/** @param self the pod as it is counted where it runs: it must not stand in its own way */
export function tryPod(profile: Profile, pod: PodInfo, snapshot: Snapshot, self?: { readonly info: PodInfo; readonly nodeName: string }): Trial {
  const state = new CycleState()
  const beforehand: PluginReasons[] = []
  const narrowed = new Map<string, ReadonlySet<string>>()
  for (const plugin of profile.points.preFilter) {
    const result = attempt(() => plugin.preFilter(state, pod, snapshot))
    if (result === 'skip' || isRefusal(result)) state.skipFilter.add(plugin.name)
    if (isRefusal(result)) beforehand.push({ plugin: plugin.name, reasons: result.reasons })
    else if (result !== 'skip' && result?.nodeNames) narrowed.set(plugin.name, result.nodeNames)
  }
  const filters = profile.points.filter.filter(({ name }) => !state.skipFilter.has(name))
  const names = [...filters.map(({ name }) => name), ...[...narrowed.keys()].filter((name) => !filters.some((filter) => filter.name === name))]
  return {
    beforehand,
    filters: names,
    refusalsOf: (node) => {
      const found: PluginReasons[] = []
      const [seen, seenState] = self?.nodeName === node.name ? without(profile, state, pod, node, self.info) : [node, state]
      for (const plugin of filters) {
        const refusal = attempt(() => plugin.filter(seenState, pod, seen))
        if (isRefusal(refusal)) found.push({ plugin: plugin.name, reasons: refusal.reasons })
      }
      for (const [plugin, nodeNames] of narrowed)
        if (!nodeNames.has(node.name) && !found.some((one) => one.plugin === plugin))
          found.push({ plugin, reasons: [`node(s) didn't satisfy plugin(s) [${plugin}]`] })
      return found
    },
  }
}

/** The failure of a plugin counts as its refusal, so that the explanation is complete. */
function attempt<T>(ask: () => T): T | { readonly code: 'Unschedulable'; readonly reasons: readonly string[] } {
  try {
    return ask()
  } catch (error) {
    return { code: 'Unschedulable', reasons: [messageOf(error)] }
  }
}

function without(profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo, self: PodInfo): readonly [NodeInfo, CycleState] {
  const copy = node.clone()
  const stateWithout = state.clone()
  copy.remove(self.key)
  for (const plugin of profile.points.preFilter as readonly SchedulerPlugin[])
    if (!state.skipFilter.has(plugin.name)) attempt(() => plugin.removePod?.(stateWithout, pod, self, copy))
  return [copy, stateWithout]
}
