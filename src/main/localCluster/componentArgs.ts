/** Flags of kube-apiserver, kube-controller-manager and kube-scheduler for a local cluster (L5): checked before anything is made, and kept with it. */
import path from 'node:path'
import type { Clock } from '#base/clock'
import type { UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { ComponentFlags } from '#cli/kubeadm/upFlags'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import { runsServer } from './runningServers.ts'

export type ComponentArgs = Pick<UpOptions, 'apiServerArgs' | 'controllerManagerArgs' | 'schedulerArgs'>

const components = {
  apiServerArgs: 'kube-apiserver',
  controllerManagerArgs: 'kube-controller-manager',
  schedulerArgs: 'kube-scheduler',
} as const
type Key = keyof typeof components
const keys = Object.keys(components) as readonly Key[]

/** Reads the flags as the server will, files included. Nothing is loaded when there are none. @throws CommandError usage with every fault */
export async function checkComponentArgs(given: ComponentArgs, clock: Clock): Promise<void> {
  const set = keys.filter((key) => given[key]?.length)
  if (set.length === 0) return
  const [groups, { readOptions }, { UsageError }, { createConfigFile }] = await Promise.all([
    optionGroupsOf(),
    import('../apiserver/options/readOptions.ts'),
    import('../apiserver/options/flags.ts'),
    import('../apiserver/configFile.ts'),
  ])
  const file = (name: string) => {
    // The server runs in another folder than the user.
    if (!path.isAbsolute(name)) throw new UsageError([`${name}: a file that a flag names must be an absolute path`])
    return createConfigFile(name, clock)
  }
  for (const key of set) {
    try {
      await readOptions(groups[key], given[key] ?? [], { file })
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      const component = components[key]
      throw new CommandError('usage', error.message, { hint: `these are flags of ${component}, given with ${flagOf(component)}`, cause: error })
    }
  }
}

/** Loaded when there is something to read. */
async function optionGroupsOf() {
  const [{ optionGroups }, { localControllerGroups, localSchedulerGroups }] = await Promise.all([
    import('../apiserver/options/index.ts'),
    import('../component/options/local.ts'),
  ])
  return { apiServerArgs: optionGroups, controllerManagerArgs: localControllerGroups, schedulerArgs: localSchedulerGroups }
}

export async function componentFlags(): Promise<ComponentFlags> {
  const groups = await optionGroupsOf()
  const names = (key: Key) => new Set(Object.values(groups[key]).flatMap(({ flags }) => Object.keys(flags)))
  return { 'kube-apiserver': names('apiServerArgs'), 'kube-controller-manager': names('controllerManagerArgs'), 'kube-scheduler': names('schedulerArgs') }
}

const flagOf = (component: string) => `--${component}-arg`

/** The cluster with these flags from now on. @throws CommandError alreadyExists while its server runs with others */
export async function withComponentArgs(paths: ClusterPaths, state: ClusterState, given: ComponentArgs): Promise<ClusterState> {
  const others = keys.filter((key) => given[key] && JSON.stringify(given[key]) !== JSON.stringify(state[key] ?? []))
  if (others.length === 0) return state
  if (await runsServer(paths, state)) {
    throw new CommandError('alreadyExists', `cluster "${state.name}" runs with other ${others.map((key) => flagOf(components[key])).join(', ')} flags`, {
      hint: `stop it first (skiff stop ${state.name}): the next start takes the new ones`,
    })
  }
  const changed = { ...state, ...Object.fromEntries(others.map((key) => [key, given[key]])) }
  await writeState(paths, changed)
  return changed
}
