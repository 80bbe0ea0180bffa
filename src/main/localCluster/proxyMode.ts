/** How the real nodes of a local cluster serve Services (L5): given to `up` and kept with the cluster; its agents apply it when they start. */
import { CommandError } from '#cli/exitCodes'
import type { Exec } from '#host/exec'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import { runsServer } from './runningServers.ts'

/** The name for the first mode that the node can run. */
const autoMode = 'auto'
/** The name for no proxy at all: another program serves Services. */
const noProxyMode = 'none'

/** @throws CommandError usage for an unknown mode, unmetPrerequisite for one that this host cannot run */
export async function checkProxyMode(exec: Exec, wanted: string | undefined, realNodes: number): Promise<void> {
  if (wanted === undefined || wanted === autoMode) return
  // Other starts do not load them.
  const { proxyModes: modes } = await import('#proxy/modes/index')
  const mode = modes.find(({ name }) => name === wanted)
  if (!mode && wanted !== noProxyMode)
    throw new CommandError('usage', `--proxy-mode ${wanted}: expected ${[autoMode, ...modes.map(({ name }) => name), noProxyMode].join(', ')}`)
  if (realNodes === 0) throw new CommandError('unmetPrerequisite', `--proxy-mode ${wanted} is for nodes with containerd: simulated nodes serve no Services`)
  const obstacle = await mode?.obstacle(exec, 'IPv4')
  if (obstacle) throw new CommandError('unmetPrerequisite', `--proxy-mode ${wanted} cannot be used here: ${obstacle}`)
}

/** The cluster with this mode from now on. @throws CommandError alreadyExists while its server runs with another */
export async function withProxyMode(exec: Exec, paths: ClusterPaths, state: ClusterState, wanted: string | undefined): Promise<ClusterState> {
  const has = state.proxyMode ?? autoMode
  if (wanted === undefined || wanted === has) return state
  await checkProxyMode(exec, wanted, state.nodes.length)
  if (await runsServer(paths, state)) {
    throw new CommandError('alreadyExists', `cluster "${state.name}" runs with --proxy-mode ${has}`, {
      hint: `stop it first (skiff stop ${state.name}): the next start takes ${wanted}`,
    })
  }
  const changed = { ...state, proxyMode: wanted }
  await writeState(paths, changed)
  return changed
}
