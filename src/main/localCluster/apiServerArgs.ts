/** kube-apiserver's flags of a local cluster (L5): checked before anything is made, and kept with the cluster. */
import path from 'node:path'
import type { Clock } from '#base/clock'
import { CommandError } from '#cli/exitCodes'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import { runningProcess } from './processes.ts'

/** Reads the flags as the server will, files included. Nothing is loaded when there are none. @throws CommandError usage with every fault */
export async function checkApiServerArgs(args: readonly string[] | undefined, clock: Clock): Promise<void> {
  if (!args || args.length === 0) return
  const [{ serverOptions }, { UsageError }, { createConfigFile }] = await Promise.all([
    import('../apiserver/options/index.ts'),
    import('../apiserver/options/flags.ts'),
    import('../apiserver/configFile.ts'),
  ])
  const file = (name: string) => {
    // The server runs in another folder than the user.
    if (!path.isAbsolute(name)) throw new UsageError([`${name}: a file that a flag names must be an absolute path`])
    return createConfigFile(name, clock)
  }
  try {
    await serverOptions(args, { file })
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw new CommandError('usage', error.message, { hint: 'these are flags of kube-apiserver, given with --kube-apiserver-arg', cause: error })
  }
}

/** The cluster with these flags from now on. @throws CommandError alreadyExists while its server runs with others */
export async function withApiServerArgs(paths: ClusterPaths, state: ClusterState, args: readonly string[] | undefined): Promise<ClusterState> {
  if (!args || JSON.stringify(args) === JSON.stringify(state.apiServerArgs ?? [])) return state
  if (await runningProcess(paths.serverPid)) {
    throw new CommandError('alreadyExists', `cluster "${state.name}" runs with other --kube-apiserver-arg flags`, {
      hint: `stop it first (skiff stop ${state.name}): the next start takes the new ones`,
    })
  }
  const changed = { ...state, apiServerArgs: args }
  await writeState(paths, changed)
  return changed
}
