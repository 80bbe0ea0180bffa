/** Which processes a local cluster's server has (L5): given to `up` and kept with the cluster; its server reads it when it starts. */
import type { UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'

/** @throws CommandError usage */
export function checkLayout(layout: UpOptions['layout'], servers: number): void {
  if (layout !== 'split' || servers < 2) return
  throw new CommandError('usage', '--layout split is for a cluster with one server: several servers hand controllers and simulated nodes to each other', {
    hint: 'leave out --layout or --control-planes',
  })
}

/** The cluster with this layout from now on. */
export async function withLayout(paths: ClusterPaths, state: ClusterState, { layout }: Pick<UpOptions, 'layout'>): Promise<ClusterState> {
  if (layout === undefined || layout === (state.layout ?? 'auto')) return state
  checkLayout(layout, state.servers?.length ?? 1)
  const changed = { ...state, layout }
  await writeState(paths, changed)
  return changed
}
