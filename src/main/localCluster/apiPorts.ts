/** The ports that the API servers of this host's clusters listen on (L5), also of clusters that are stopped: they need them again. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { clusterPaths, readState } from './clusterState.ts'
import { apiPortsOf } from './controlPlanes.ts'

/** The names of this home's clusters by the ports of their APIs. */
export async function clustersByApiPort(home: string): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for (const name of await fs.readdir(path.join(home, 'clusters')).catch(() => [])) {
    // The folder also has locks of clusters, and a cluster may be deleted or damaged.
    const state = await readState(clusterPaths(home, name)).catch(() => undefined)
    for (const port of state ? apiPortsOf(state) : []) found.set(port, name)
  }
  return found
}
