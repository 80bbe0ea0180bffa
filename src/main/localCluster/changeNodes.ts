/** `skiff nodes add` and `remove` (L5): they change the cluster's description, which its server follows, and wait for the nodes. */
import { freemem } from 'node:os'
import { parseCidr } from '#api/machinery/ip'
import { CommandError } from '#cli/exitCodes'
import { maxSimulatedNodes, type NodeLike, nodeNames } from '#cli/nodeLike'
import type { Progress } from '#cli/progress'
import { addressPlanOf } from './addressPlan.ts'
import { type ApiProbe, nodeReadiness } from './apiProbe.ts'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import { nodesReady } from './nodesReady.ts'
import { tellServers } from './runningServers.ts'
import { nextNumber, simulatedNodesOf, usualName, withoutNewest } from './simulatedPlan.ts'

/** The resident memory of a node without pods, as docs/scale.md has it. */
const bytesPerNode = 200_000

/** @throws CommandError unmetPrerequisite when the host has not the memory for so many nodes */
export function checkMemory(count: number, freeBytes = freemem()): void {
  const neededBytes = count * bytesPerNode
  if (neededBytes <= freeBytes) return
  const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`
  throw new CommandError(
    'unmetPrerequisite',
    `${count} simulated nodes need about ${mebibytes(neededBytes)}, and this host has ${mebibytes(freeBytes)} of free memory`,
  )
}

interface Change {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly progress: Progress
}

const goneMs = 60_000

/** @throws CommandError before anything is changed, or timeout when not all are ready in time */
export async function addNodes({ paths, state, progress }: Change, probe: ApiProbe, count: number, like: NodeLike): Promise<void> {
  const before = simulatedNodesOf(state)
  const total = state.nodes.length + before.length + count
  if (before.length + count > maxSimulatedNodes)
    throw new CommandError('usage', `cluster "${state.name}" has ${before.length} simulated nodes, and ${maxSimulatedNodes} at most`)
  const taken = new Set([...before, ...state.nodes].map(({ name }) => name))
  nodeNames(like.name ?? usualName(state.name), nextNumber(state), count, taken)
  checkRange(state, total)
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
export async function removeNodes({ paths, state, progress }: Change, probe: ApiProbe, count: number): Promise<void> {
  const groups = state.addedNodes ?? []
  const added = groups.reduce((sum, group) => sum + group.count, 0)
  if (count > added) throw tooMany(state.name, count, added)
  await checkServes(state, probe)
  const addedNodes = withoutNewest(groups, count)
  const kept = new Set(simulatedNodesOf({ ...state, addedNodes }).map(({ name }) => name))
  const gone = simulatedNodesOf(state).flatMap(({ name }) => (kept.has(name) ? [] : [name]))
  const earlier = (state.removedNodes ?? []).filter((name) => !kept.has(name))
  const changed = { ...state, addedNodes, removedNodes: [...new Set([...earlier, ...gone])] }
  await writeState(paths, changed)
  await tellServers(paths, changed)
  await progress.step(`Removing ${count} simulated nodes`, (report) =>
    probe.until('the removal of the nodes', goneMs + count * 25, async () => {
      const there = await nodeReadiness(probe)
      if (!there) return undefined
      const left = gone.filter((name) => there.has(name)).length
      report(`${count - left} of ${count}`)
      return left === 0 ? true : undefined
    }),
  )
  await writeState(paths, { ...changed, removedNodes: earlier })
}

function tooMany(cluster: string, count: number, added: number): CommandError {
  if (added === 0) return new CommandError('usage', `cluster "${cluster}" has no nodes that "skiff nodes add" added, and those of "skiff up" stay`)
  return new CommandError('usage', `--simulated ${count}: cluster "${cluster}" has ${added} nodes that "skiff nodes add" added, and those of "skiff up" stay`, {
    hint: `remove all that were added with: skiff nodes remove ${cluster} --simulated ${added}`,
  })
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

async function checkServes({ name }: ClusterState, probe: ApiProbe): Promise<void> {
  if ((await probe.get('/readyz'))?.status === 200) return
  throw new CommandError('unmetPrerequisite', `cluster "${name}" does not run`, { hint: `start it with: skiff start ${name}` })
}
