/** Node groups in the description of a local cluster (L5, pure): which nodes a group has before and after a change. */
import { namesAt } from '#cli/nodeLike'
import type { ClusterState } from './clusterState.ts'
import { groupPattern, type NodeGroup, takenNames } from './simulatedPlan.ts'

/** Numbers of nodes of groups; after the last one, free numbers are used again. */
export const mostGroupNumbers = 100_000

export function groupOf({ nodeGroups = [] }: ClusterState, name: string): NodeGroup | undefined {
  return nodeGroups.find((group) => group.name === name)
}

/** How many more nodes the groups can get than they have. */
export function growthOf({ nodeGroups = [] }: ClusterState): number {
  return nodeGroups.reduce((sum, { max, numbers }) => sum + Math.max(0, max - numbers.length), 0)
}

/** The numbers of the next nodes. None is used again soon: who deletes a node must not meet another one of its name. */
export function nextNumbers({ nodeGroups = [], lastGroupNumber = 0 }: ClusterState, count: number): number[] {
  const taken = new Set(nodeGroups.flatMap(({ numbers }) => numbers))
  const found: number[] = []
  for (let step = 0; found.length < count && step < mostGroupNumbers; step++) {
    const number = ((lastGroupNumber + step) % mostGroupNumbers) + 1
    if (!taken.has(number)) found.push(number)
  }
  return found
}

/**
 * The description with more nodes in a group that it has.
 * @throws CommandError usage when a name is taken, or is none
 */
export function withMoreNodes(state: ClusterState, group: NodeGroup, count: number): ClusterState {
  const added = nextNumbers(state, count)
  namesAt(groupPattern(group), added, takenNames(state))
  const grown = { ...group, numbers: [...group.numbers, ...added] }
  return { ...withGroup(state, grown), lastGroupNumber: added.at(-1) ?? state.lastGroupNumber }
}

/** The description without some nodes of a group. */
export function withoutNumbers(state: ClusterState, group: NodeGroup, numbers: ReadonlySet<number>): ClusterState {
  return withGroup(state, { ...group, numbers: group.numbers.filter((number) => !numbers.has(number)) })
}

export function withoutGroup(state: ClusterState, name: string): ClusterState {
  return { ...state, nodeGroups: (state.nodeGroups ?? []).filter((group) => group.name !== name) }
}

/** In its place, or as the last one. */
function withGroup(state: ClusterState, group: NodeGroup): ClusterState {
  const { nodeGroups = [] } = state
  const isThere = nodeGroups.some(({ name }) => name === group.name)
  return { ...state, nodeGroups: isThere ? nodeGroups.map((one) => (one.name === group.name ? group : one)) : [...nodeGroups, group] }
}
