/** The directories of local-path volumes that a cluster's real nodes hold (L5): deleting the cluster deletes them. */
import path from 'node:path'
import { localPathDirectory } from '#api/helpers/localPath'
import { listIfExists } from '#host/files'
import type { ClusterPaths, ClusterState } from './clusterState.ts'

/** One line for each node that has such volumes. */
export async function localVolumesOf(paths: ClusterPaths, { nodes }: Pick<ClusterState, 'nodes'>): Promise<string[]> {
  const lines = await Promise.all(
    nodes.map(async ({ name }) => {
      // The node's /var/lib/kubelet is this folder.
      const folder = path.join(paths.node(name), 'kubelet', localPathDirectory)
      const { length } = (await listIfExists(folder)).filter((entry) => entry.startsWith('pvc-') && !entry.endsWith('.new'))
      return length === 0 ? [] : [`${length} local ${length === 1 ? 'volume with its' : 'volumes with their'} data in ${folder}`]
    }),
  )
  return lines.flat()
}
