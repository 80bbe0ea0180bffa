/** Nodes and what their pods ask for (L4, pure): as shares of what each node has for pods, in the amounts of the scheduler. */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen, KubeObject } from '#api/machinery/meta'

export const counted = ['cpu', 'memory', 'pods'] as const
export type Counted = (typeof counted)[number]

export interface PodShare {
  readonly namespace: string
  readonly name: string
  readonly amount: number
}

export interface NodeShare {
  readonly resource: Counted
  readonly allocatable: number
  readonly requested: number
  /** The largest first. */
  readonly pods: readonly PodShare[]
}

export interface NodeCapacity {
  readonly name: string
  readonly isReady: boolean
  readonly isCordoned: boolean
  readonly shares: readonly NodeShare[]
}

type Named = Pick<KubeObject, 'metadata'>
export type CountedPod = Frozen<Pick<Pod, 'spec'> & Partial<Pick<Pod, 'status'>> & Named>
export type CountedNode = Frozen<Partial<Pick<Node, 'spec' | 'status'>> & Named>

const isOver = ({ status }: CountedPod) => status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** Pods that are over take nothing. */
export function capacitiesOf(nodes: readonly CountedNode[], pods: readonly CountedPod[]): NodeCapacity[] {
  const byNode = new Map<string, CountedPod[]>()
  for (const pod of pods) {
    const { nodeName } = pod.spec
    if (nodeName === undefined || isOver(pod)) continue
    const there = byNode.get(nodeName)
    if (there) there.push(pod)
    else byNode.set(nodeName, [pod])
  }
  return nodes.map((node) => capacityOf(node, byNode.get(node.metadata.name ?? '') ?? []))
}

function capacityOf({ metadata: { name = '' }, spec, status }: CountedNode, pods: readonly CountedPod[]): NodeCapacity {
  const allocatable = amountsOf(status?.allocatable)
  const requests = pods.map((pod) => ({ pod, amounts: { ...podRequests(pod as Frozen<Pod>), pods: 1 } as Readonly<Record<string, number>> }))
  return {
    name,
    isReady: findCondition(status?.conditions, 'Ready')?.status === 'True',
    isCordoned: spec?.unschedulable === true,
    shares: counted.map((resource): NodeShare => {
      const shares = requests
        .map(({ pod: { metadata }, amounts }) => ({ namespace: metadata.namespace ?? '', name: metadata.name ?? '', amount: amounts[resource] ?? 0 }))
        .filter(({ amount }) => amount > 0)
        .sort((one, other) => other.amount - one.amount)
      return { resource, allocatable: allocatable[resource] ?? 0, requested: shares.reduce((sum, { amount }) => sum + amount, 0), pods: shares }
    }),
  }
}

/** For people: cores, GiB, a number. */
export function amountText(resource: Counted, amount: number): string {
  if (resource === 'cpu') return `${Number((amount / 1000).toFixed(2))} cores`
  return resource === 'memory' ? `${Number((amount / 2 ** 30).toFixed(2))} GiB` : `${amount} pods`
}
