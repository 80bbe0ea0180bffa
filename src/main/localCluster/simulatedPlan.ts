/** The simulated nodes of a local cluster (L5, pure): those that it was made with, and the groups that `skiff nodes add` added since. */
import { expand, type NodeLike, nodeAt } from '#cli/nodeLike'

/** Nodes that were added together, numbered after those before. */
export interface AddedNodes {
  readonly first: number
  readonly count: number
  readonly like: NodeLike
}

export interface PlannedNode extends Omit<NodeLike, 'name'> {
  readonly name: string
  /** From 1; its address follows from it. */
  readonly number: number
}

/** The part of a cluster's description that says so. */
interface Plan {
  readonly name: string
  readonly simulatedNodes: readonly string[]
  readonly addedNodes?: readonly AddedNodes[] | undefined
}

export function simulatedNodesOf({ name, simulatedNodes, addedNodes = [] }: Plan): PlannedNode[] {
  const own = simulatedNodes.map((nodeName, index) => ({ name: nodeName, number: index + 1 }))
  const added = addedNodes.flatMap(({ first, count, like }) =>
    Array.from({ length: count }, (_, index) => {
      const number = first + index
      return { name: expand(like.name ?? usualName(name), number), number, ...nodeAt(like, number) }
    }),
  )
  return [...own, ...added]
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
