/**
 * The changes of a node group that an autoscaler asks for (L5). They are answered when the group's size is changed, not when nodes are ready; errors have the
 * words of upstream's simulated provider. Upstream: cluster-autoscaler/cloudprovider/kwok/kwok_nodegroups.go (1.36).
 */
import type { Logger } from '#base/log'
import { CommandError } from '#cli/exitCodes'
import type { ApiProbe } from '../localCluster/apiProbe.ts'
import { growGroup, shrinkGroup } from '../localCluster/changeNodeGroups.ts'
import type { Change } from '../localCluster/changeNodes.ts'
import { groupNode, type NodeGroup } from '../localCluster/simulatedPlan.ts'
import { registeredNodes } from './clusterGroups.ts'

/** The autoscaler waits five seconds, and for the size alone; it may delete ten nodes at the same time, each by a call. */
const goneMs = 0

/** @throws Error when the size would be over the maximum, and CommandError when the cluster has no room for it */
export async function increaseSize(change: Change, probe: ApiProbe, group: NodeGroup, delta: number, log: Logger): Promise<object> {
  if (delta <= 0) throw new Error('size increase must be positive')
  const from = group.numbers.length
  const to = from + delta
  if (to > group.max) throw new Error(`size increase too large, desired: ${to} max: ${group.max}`)
  await growGroup(change, probe, group, delta)
  log.info('Scaled node group up', { group: group.name, from, to })
  return {}
}

/** @throws Error when the size would be below the minimum, or a node is not of the group */
export async function deleteNodes(
  change: Change,
  probe: ApiProbe,
  group: NodeGroup,
  given: readonly { readonly name: string; readonly instance: string }[],
  log: Logger,
): Promise<object> {
  const numbers = new Map(group.numbers.map((number) => [groupNode(change.state.name, group, number).providerID, number]))
  const from = group.numbers.length
  const to = from - new Set(given.map(({ instance }) => instance)).size
  if (from <= group.min) throw new Error('min size reached, nodes will not be deleted')
  if (to < group.min) throw new Error("can't delete nodes because nodegroup size would go below min size")
  const chosen = new Set<number>()
  for (const { name, instance } of given) {
    const number = numbers.get(instance)
    if (number === undefined) throw new Error(`${name} belongs to a different group than ${group.name}`)
    chosen.add(number)
  }
  await shrinkGroup(change, probe, group, chosen, goneMs).catch(unlessLate)
  log.info('Scaled node group down', { group: group.name, from, to })
  return {}
}

/** Takes back nodes that have not registered. @throws Error when the size would be less than the nodes that have */
export async function decreaseTargetSize(change: Change, probe: ApiProbe, group: NodeGroup, delta: number, log: Logger): Promise<object> {
  if (delta >= 0) throw new Error('size decrease must be negative')
  const there = await registeredNodes(probe, change.state, group.name)
  const from = group.numbers.length
  const missing = group.numbers.filter((number) => !there.has(groupNode(change.state.name, group, number).name))
  if (missing.length + delta < 0) {
    throw new Error(`attempt to delete existing nodes, targetSize: ${from} delta: ${delta} existingNodes: ${from - missing.length}`)
  }
  await shrinkGroup(change, probe, group, new Set(missing.slice(delta)), goneMs).catch(unlessLate)
  log.info('Took back nodes that have not registered', { group: group.name, from, to: from + delta })
  return {}
}

/** The size is changed; the description names the Nodes that are still to be deleted. */
function unlessLate(error: unknown): void {
  if (!(error instanceof CommandError && error.exit === 'timeout')) throw error
}
