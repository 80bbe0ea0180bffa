/** How large the logs of a local cluster become (L5): given to `up` and kept with the cluster; its server applies them from its next start on. */
import type { UpOptions } from '#cli/clusterManager'
import { type ClusterPaths, type ClusterState, type LogLimits, writeState } from './clusterState.ts'

export const defaultLogLimits: LogLimits = { maxMebibytes: 20, maxFiles: 3 }

/** What the user asks for, and for the rest what the cluster has. */
export function limitsOf(
  { logLimits = defaultLogLimits }: Pick<ClusterState, 'logLimits'>,
  options: Partial<Pick<UpOptions, 'logMaxSize' | 'logMaxFiles'>>,
): LogLimits {
  return { maxMebibytes: options.logMaxSize ?? logLimits.maxMebibytes, maxFiles: options.logMaxFiles ?? logLimits.maxFiles }
}

/** The cluster with these limits from now on. */
export async function withLogLimits(paths: ClusterPaths, state: ClusterState, options: UpOptions): Promise<ClusterState> {
  if (options.logMaxSize === undefined && options.logMaxFiles === undefined) return state
  const changed = { ...state, logLimits: limitsOf(state, options) }
  await writeState(paths, changed)
  return changed
}
