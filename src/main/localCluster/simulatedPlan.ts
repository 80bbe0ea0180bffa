/** The simulated nodes of a local cluster (L5, pure): those that it was made with, those that `skiff nodes add` added since, and those of node groups. */
import { expand, maxSimulatedNodes, type NodeLike, nodeAt } from '#cli/nodeLike'

/** Nodes that were added together, numbered after those before. */
export interface AddedNodes {
  readonly first: number
  readonly count: number
  readonly like: NodeLike
}

/** Nodes that `skiff nodegroup` and an autoscaler add and remove. */
export interface NodeGroup {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly like: NodeLike
  /** The numbers of its nodes among those of all groups, from 1, the oldest node first. */
  readonly numbers: readonly number[]
}

export interface PlannedNode extends Omit<NodeLike, 'name'> {
  readonly name: string
  /** From 1; its address follows from it. */
  readonly number: number
  /** Only a node of a group has one. */
  readonly providerID?: string | undefined
}

/** The label that names the group of a node. */
export const nodeGroupLabel = 'skiff.dev/node-group'

/** The part of a cluster's description that says so. */
interface Plan {
  readonly name: string
  readonly simulatedNodes: readonly string[]
  readonly addedNodes?: readonly AddedNodes[] | undefined
  readonly nodeGroups?: readonly NodeGroup[] | undefined
}

/** All of them, in the order in which they were planned; the nodes of groups last. */
export function simulatedNodesOf({ name, simulatedNodes, addedNodes = [], nodeGroups = [] }: Plan): PlannedNode[] {
  const own = simulatedNodes.map((nodeName, index) => ({ name: nodeName, number: index + 1 }))
  const added = addedNodes.flatMap(({ first, count, like }) =>
    Array.from({ length: count }, (_, index) => {
      const number = first + index
      return { name: expand(like.name ?? usualName(name), number), number, ...nodeAt(like, number) }
    }),
  )
  const grouped = nodeGroups.flatMap((group) => group.numbers.map((number) => groupNode(name, group, number)))
  return [...own, ...added, ...grouped]
}

/** The node of a group with that number. */
export function groupNode(clusterName: string, group: Omit<NodeGroup, 'numbers'>, number: number): PlannedNode {
  const { labels, ...node } = nodeAt(group.like, number)
  const name = expand(groupPattern(group), number)
  return {
    ...node,
    name,
    // Other nodes have numbers up to the most that a cluster may have.
    number: maxSimulatedNodes + number,
    labels: { ...labels, [nodeGroupLabel]: group.name },
    providerID: providerIdOf(clusterName, name),
  }
}

/** The pattern of the names of its nodes. */
export const groupPattern = ({ name, like }: Pick<NodeGroup, 'name' | 'like'>) => like.name ?? `${name}-{n}`

export const providerIdOf = (clusterName: string, nodeName: string) => `skiff://${clusterName}/${nodeName}`

/** The names of all nodes of a cluster, real ones too. */
export function takenNames(plan: Plan & { readonly nodes: readonly { readonly name: string }[] }): ReadonlySet<string> {
  return new Set([...simulatedNodesOf(plan), ...plan.nodes].map(({ name }) => name))
}

export const usualName = (clusterName: string) => `${clusterName}-sim-{n}`

/** The number of the next node. */
export function nextNumber({ simulatedNodes, addedNodes = [] }: Plan): number {
  const last = addedNodes.at(-1)
  return last ? last.first + last.count : simulatedNodes.length + 1
}

/** The groups without the newest `count` nodes. */
export function withoutNewest(groups: readonly AddedNodes[], count: number): AddedNodes[] {
  const left = groups.map((group) => ({ ...group }))
  let rest = count
  for (const group of [...left].reverse()) {
    const taken = Math.min(rest, group.count)
    group.count -= taken
    rest -= taken
  }
  return left.filter((group) => group.count > 0)
}
