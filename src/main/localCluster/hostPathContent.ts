/** What the host path drivers of a local cluster hold on the disk of this host, as their state files say (L5). */
import path from 'node:path'
import type { State } from '#csi/hostpath/state'
import { listIfExists, readTextIfExists } from '#host/files'
import type { ClusterPaths, ClusterState } from './clusterState.ts'

/** Handles of all volumes and snapshots, also those that no object of the API names: a backup program deletes the objects of its snapshots. @param driver its name */
export async function handlesOfHostPath(driver: string, paths: ClusterPaths, state: ClusterState): Promise<readonly string[]> {
  const simulated = path.join(paths.dir, 'csi-hostpath')
  const directories = [
    ...state.nodes.map(({ name }) => path.join(paths.node(name), 'kubelet/plugins', driver, 'state')),
    ...(await listIfExists(simulated)).map((name) => path.join(simulated, name)),
  ]
  return (await Promise.all(directories.map(handlesIn))).flat()
}

async function handlesIn(directory: string): Promise<readonly string[]> {
  const text = await readTextIfExists(path.join(directory, 'state.json'))
  if (text === undefined) return []
  const { volumes, snapshots } = JSON.parse(text) as State
  return [...volumes, ...snapshots].map(({ id }) => id)
}
