/** Asks the API of a local cluster as its administrator (L5). */
import { type ApiProbe, createApiProbe } from './apiProbe.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'
import { loadPki } from './sharedPki.ts'

/** Gives `use` a probe that is closed afterwards. */
export async function askCluster<T>(
  deps: Pick<LocalClusterDeps, 'clock'>,
  paths: ClusterPaths,
  state: ClusterState,
  use: (probe: ApiProbe) => Promise<T>,
): Promise<T> {
  const pki = await loadPki(deps, paths, state)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    return await use(probe)
  } finally {
    probe.close()
  }
}
