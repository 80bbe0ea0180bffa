/**
 * `skiff nodegroup create`, `scale` and `delete` (L5), and the changes that an autoscaler makes: they change the cluster's description, which its server
 * follows. Commands wait for the nodes.
 */
import type { NewNodeGroup, NodeGroupStatus } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import { type ApiProbe, nodeReadiness } from './apiProbe.ts'
import { type Change, checkMemory, checkRoom, checkServes, leavePlan } from './changeNodes.ts'
import { type ClusterState, writeState } from './clusterState.ts'
import { groupOf, growthOf, withMoreNodes, withoutGroup, withoutNumbers } from './nodeGroupPlan.ts'
import { nodesReady } from './nodesReady.ts'
import { tellServers } from './runningServers.ts'
import { groupNode, groupPattern, type NodeGroup } from './simulatedPlan.ts'

/** @throws CommandError before anything is changed, or timeout when not all nodes are ready in time */
export async function createNodeGroup(change: Change, probe: ApiProbe, { size, ...settings }: NewNodeGroup): Promise<void> {
  const { state } = change
  const group = { ...settings, numbers: [] }
  if (groupOf(state, group.name)) throw new CommandError('alreadyExists', `cluster "${state.name}" has a node group "${group.name}"`)
  if (!groupPattern(group).includes('{n}')) {
    throw new CommandError('usage', `the pattern "${groupPattern(group)}" gives one name to several nodes`, { hint: 'let the name contain {n}' })
  }
  // An autoscaler counts on the maximum.
  checkRoom(state, growthOf(state) + group.max)
  await waitForReady(change, probe, await growGroup(change, probe, group, size))
}

/** @throws CommandError before anything is changed, or timeout when not all nodes are ready, or gone, in time */
export async function scaleNodeGroup(change: Change, probe: ApiProbe, name: string, size: number): Promise<void> {
  const group = existing(change.state, name)
  const { min, max, numbers } = group
  if (size < min || size > max) throw new CommandError('usage', `${size}: the size of node group "${name}" is from ${min} to ${max}`)
  if (size >= numbers.length) await waitForReady(change, probe, await growGroup(change, probe, group, size - numbers.length))
  else await shrinkGroup(change, probe, group, new Set(numbers.slice(size)))
}

/** Removes the group with its nodes. @throws CommandError before anything is changed, or timeout when not all nodes are gone in time */
export async function deleteNodeGroup(change: Change, probe: ApiProbe, name: string): Promise<void> {
  existing(change.state, name)
  await checkServes(change.state, probe)
  await leavePlan(change, probe, withoutGroup(change.state, name))
}

/** Adds nodes, and waits for none of them. @returns the description as it is then @throws CommandError before anything is changed */
export async function growGroup({ paths, state }: Change, probe: ApiProbe, group: NodeGroup, count: number): Promise<ClusterState> {
  checkRoom(state, count)
  checkMemory(count)
  const changed = withMoreNodes(state, group, count)
  await checkServes(state, probe)
  await writeState(paths, changed)
  await tellServers(paths, changed)
  return changed
}

/** Removes the nodes with these numbers. @param waitMs as of leavePlan() @throws CommandError as leavePlan(), or before anything is changed */
export async function shrinkGroup(change: Change, probe: ApiProbe, group: NodeGroup, numbers: ReadonlySet<number>, waitMs?: number): Promise<void> {
  await checkServes(change.state, probe)
  await leavePlan(change, probe, withoutNumbers(change.state, group, numbers), waitMs)
}

/** The groups, and which of their nodes are ready; none when the API server does not answer. */
export async function nodeGroupStatuses({ name: cluster, nodeGroups = [] }: ClusterState, probe: ApiProbe): Promise<NodeGroupStatus[]> {
  const readiness = nodeGroups.length === 0 ? undefined : await nodeReadiness(probe)
  return nodeGroups.map((group) => {
    const nodes = group.numbers.map((number) => groupNode(cluster, group, number).name)
    const ready = nodes.filter((node) => readiness?.get(node)?.ready === true).length
    return { name: group.name, min: group.min, max: group.max, size: nodes.length, ready, nodes }
  })
}

function existing(state: ClusterState, name: string): NodeGroup {
  const group = groupOf(state, name)
  if (group) return group
  throw new CommandError('notFound', `cluster "${state.name}" has no node group "${name}"`, { hint: `its groups: skiff nodegroup ls --name ${state.name}` })
}

async function waitForReady(change: Change, probe: ApiProbe, state: ClusterState): Promise<void> {
  const late = await nodesReady({ ...change, state }, probe)
  if (late) throw late
}
