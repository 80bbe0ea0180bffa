/** `skiff nodes add` and `remove` (L5): they change the cluster's description, which its server follows, and wait for the nodes. */
import { parseCidr } from '#api/machinery/ip'
import { CommandError } from '#cli/exitCodes'
import { maxSimulatedNodes, type NodeLike, nodeNames } from '#cli/nodeLike'
import type { Progress } from '#cli/progress'
import { checkMemory as checkNeededMemory } from '#cli/simulatedMemory'
import { availableMemory } from '#host/availableMemory'
import { addressPlanOf } from './addressPlan.ts'
import { type ApiProbe, type NodeReadiness, nodeReadiness } from './apiProbe.ts'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import { nodesReady } from './nodesReady.ts'
import { tellServers } from './runningServers.ts'
import { nextNumber, simulatedNodesOf, takenNames, usualName, withoutNewest } from './simulatedPlan.ts'

/** @throws CommandError unmetPrerequisite when the host has not the memory for so many nodes */
export function checkMemory(count: number, availableBytes = availableMemory()): void {
  checkNeededMemory({ nodes: count }, availableBytes)
}

/** A cluster that a command changes. */
export interface Change {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly progress: Progress
}

const goneMs = 60_000

/** @throws CommandError before anything is changed, or timeout when not all are ready in time */
export async function addNodes({ paths, state, progress }: Change, probe: ApiProbe, count: number, like: NodeLike): Promise<void> {
  checkRoom(state, count)
  nodeNames(like.name ?? usualName(state.name), nextNumber(state), count, takenNames(state))
  checkMemory(count)
  await checkServes(state, probe)
  const addedNodes = [...(state.addedNodes ?? []), { first: nextNumber(state), count, like }]
  const changed = { ...state, addedNodes }
  await writeState(paths, changed)
  await tellServers(paths, changed)
  const late = await nodesReady({ paths, state: changed, progress }, probe)
  if (late) throw late
}

/** Removes the newest of the nodes that were added. @throws CommandError before anything is changed */
export async function removeNodes(change: Change, probe: ApiProbe, count: number): Promise<void> {
  const { state } = change
  const groups = state.addedNodes ?? []
  const added = groups.reduce((sum, group) => sum + group.count, 0)
  if (count > added) throw tooMany(state.name, count, added)
  await checkServes(state, probe)
  await leavePlan(change, probe, { ...state, addedNodes: withoutNewest(groups, count) })
}

/**
 * Writes a description with fewer simulated nodes, and waits until the Nodes of the others are deleted.
 * @param waitMs how long, and a little longer for each node
 * @throws CommandError timeout when some are still there; the description names them
 */
export async function leavePlan({ paths, state, progress }: Change, probe: ApiProbe, next: ClusterState, waitMs = goneMs): Promise<void> {
  const kept = new Set(simulatedNodesOf(next).map(({ name }) => name))
  const gone = simulatedNodesOf(state).flatMap(({ name }) => (kept.has(name) ? [] : [name]))
  const earlier = (state.removedNodes ?? []).filter((name) => !kept.has(name))
  const changed = { ...next, removedNodes: [...new Set([...earlier, ...gone])] }
  await writeState(paths, changed)
  await tellServers(paths, changed)
  if (gone.length === 0) return
  const last: { nodes?: ReadonlyMap<string, NodeReadiness> } = {}
  try {
    await progress.step(`Removing ${gone.length} simulated nodes`, (report) =>
      probe.until('the removal of the nodes', waitMs + gone.length * 25, async () => {
        const found = await nodeReadiness(probe)
        if (!found) return undefined
        last.nodes = found
        const left = gone.filter((name) => found.has(name)).length
        report(`${gone.length - left} of ${gone.length}`)
        return left === 0 ? true : undefined
      }),
    )
  } finally {
    if (last.nodes) await writeState(paths, { ...changed, removedNodes: changed.removedNodes.filter((name) => last.nodes?.has(name)) })
  }
}

function tooMany(cluster: string, count: number, added: number): CommandError {
  if (added === 0) return new CommandError('usage', `cluster "${cluster}" has no nodes that "skiff nodes add" added, and those of "skiff up" stay`)
  return new CommandError('usage', `--simulated ${count}: cluster "${cluster}" has ${added} nodes that "skiff nodes add" added, and those of "skiff up" stay`, {
    hint: `remove all that were added with: skiff nodes remove ${cluster} --simulated ${added}`,
  })
}

/**
 * @param count simulated nodes in addition to those that there are
 * @throws CommandError usage when the cluster cannot have so many
 */
export function checkRoom(state: ClusterState, count: number): void {
  const before = simulatedNodesOf(state).length
  if (before + count > maxSimulatedNodes)
    throw new CommandError('usage', `cluster "${state.name}" has ${before} simulated nodes, and ${maxSimulatedNodes} at most`)
  checkRange(state, state.nodes.length + before + count)
}

/** Each node gets a /24 for its pods. */
function checkRange(state: ClusterState, total: number): void {
  const { clusterCidr } = addressPlanOf(state)
  const room = 2 ** Math.max(0, 24 - (parseCidr(clusterCidr.split(',')[0] ?? '')?.prefixLength ?? 24))
  if (total <= room) return
  throw new CommandError('usage', `the range of pods ${clusterCidr} of cluster "${state.name}" has room for ${room} nodes`, {
    hint: 'make the cluster with a larger --pod-cidr, such as 10.0.0.0/10',
  })
}

/** @throws CommandError unmetPrerequisite when nothing answers */
export async function checkServes({ name }: ClusterState, probe: ApiProbe): Promise<void> {
  if ((await probe.get('/readyz'))?.status === 200) return
  throw new CommandError('unmetPrerequisite', `cluster "${name}" does not run`, { hint: `start it with: skiff start ${name}` })
}
