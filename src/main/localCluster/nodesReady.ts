/**
 * Waits until the nodes of a cluster are ready (L5), in proportion to their number. A cluster that lacks only simulated nodes when the time is over can be used.
 */
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { vnodeStartedMs } from '../vnode/vnode.ts'
import { type ApiProbe, type NodeReadiness, nodeReadiness } from './apiProbe.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'
import { isReadySince } from './clusterStatus.ts'
import { earliestStartMs, runningServers } from './runningServers.ts'
import { simulatedNodesOf } from './simulatedPlan.ts'

export const nodesReadyMs = 60_000
/** A busy machine takes so long for each simulated node. */
const simulatedNodeReadyMs = 25
/** Nodes that a message names. */
const mostNamed = 5
/** A look at ten thousand nodes costs half a second: the server needs the time between two looks for the nodes themselves. */
const pausesPerLook = 4

interface Starting {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly progress: Progress
}

/**
 * @returns the error when only simulated nodes are missing
 * @throws CommandError timeout when a real node is missing
 */
export async function nodesReady({ paths, state, progress }: Starting, probe: ApiProbe): Promise<CommandError | undefined> {
  const simulated = simulatedNodesOf(state).length
  const all = state.nodes.length + simulated
  const waitMs = nodesReadyMs + simulated * simulatedNodeReadyMs
  let missing: readonly MissingNode[] = []
  const look = async (report: (text: string) => void) => {
    missing = await notReady(paths, state, probe)
    report(`${all - missing.length} of ${all}`)
    return missing.length === 0 ? true : undefined
  }
  const awaitsPodNetwork = state.podNetwork === 'none'
  const title = awaitsPodNetwork ? 'Nodes registered: they become ready with a CNI plugin' : 'Nodes ready'
  const what = awaitsPodNetwork ? 'the registration of every node' : 'the readiness of every node'
  const told = async () => {
    const named = missing.slice(0, mostNamed).map(({ name, reason }) => `${name}: ${reason}`)
    return `: ${all - missing.length} of ${all} nodes are ready; ${named.join('; ')}`
  }
  try {
    await progress.step(title, (report) => probe.until(what, waitMs, () => look(report), told, pausesPerLook))
    return undefined
  } catch (error) {
    const realNodes = new Set(state.nodes.map(({ name }) => name))
    if (!(error instanceof CommandError) || missing.some(({ name }) => realNodes.has(name))) throw error
    const hint = `the cluster can be used, and more nodes become ready: skiff status ${state.name} shows them, skiff up ${state.name} waits again`
    return new CommandError(error.exit, error.message, { hint, serves: true, cause: error })
  }
}

interface MissingNode {
  readonly name: string
  readonly reason: string
}

/** The nodes that are not ready since they were started. */
async function notReady(paths: ClusterPaths, state: ClusterState, probe: ApiProbe): Promise<MissingNode[]> {
  const [answered, servers] = await Promise.all([nodeReadiness(probe), runningServers(paths, state)])
  const nodes = answered ?? new Map<string, NodeReadiness>()
  const startedMs = earliestStartMs(servers)
  const wanted = [
    ...(await Promise.all(state.nodes.map(async ({ name }) => ({ name, sinceMs: Math.max(startedMs, await vnodeStartedMs(paths.node(name))) })))),
    ...simulatedNodesOf(state).map(({ name }) => ({ name, sinceMs: startedMs })),
  ]
  return wanted
    .filter(({ name, sinceMs }) => !isReadySince(withoutPodNetwork(state, nodes.get(name)), sinceMs))
    .map(({ name }) => {
      const node = nodes.get(name)
      return { name, reason: node === undefined ? 'it has not registered' : node.ready ? 'no heartbeat since it was started' : node.message }
    })
}

/** A node that waits for another CNI plugin is as ready as it gets by itself. */
function withoutPodNetwork({ podNetwork }: ClusterState, node: NodeReadiness | undefined): NodeReadiness | undefined {
  return podNetwork === 'none' && node ? { ...node, ready: true } : node
}
