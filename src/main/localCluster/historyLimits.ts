/** How much history a local cluster keeps (L5): given to `up` and kept with the cluster; its server applies it from its next start on. */
import type { UpOptions } from '#cli/clusterManager'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'

type Wanted = Pick<UpOptions, 'history' | 'historySize'>

/** What the user asks for, and for the rest what the cluster has. */
export function historyOf({ history }: Pick<ClusterState, 'history'>, { history: age, historySize: size }: Wanted): ClusterState['history'] {
  const wanted = { age: age ?? history?.age, size: size ?? history?.size }
  return wanted.age === undefined && wanted.size === undefined ? undefined : wanted
}

/** The cluster with this history from now on. */
export async function withHistory(paths: ClusterPaths, state: ClusterState, options: Wanted): Promise<ClusterState> {
  if (options.history === undefined && options.historySize === undefined) return state
  const changed = { ...state, history: historyOf(state, options) }
  await writeState(paths, changed)
  return changed
}

/** As flags of its API server. */
export function historyArgs({ history }: Pick<ClusterState, 'history'>): string[] {
  return [...(history?.age === undefined ? [] : [`--history=${history.age}`]), ...(history?.size === undefined ? [] : [`--history-size=${history.size}`])]
}
