/** A socket in the folder of a local cluster that gives snapshots of its store (L5), so that `skiff snapshot save` need not stop the cluster. */
import type { Component } from '#base/component'
import { aborted } from '#base/orAborted'
import type { LocalStore } from '#store/store'
import type { ClusterPaths } from '../localCluster/clusterState.ts'
import type { ProcessTools } from './processTools.ts'

/** Only the owner of the folder can connect. */
export function storeSocket(store: LocalStore, paths: Pick<ClusterPaths, 'storeSocket' | 'store'>, { log }: Pick<ProcessTools, 'log'>): Component {
  return {
    name: 'store-socket',
    run: async (signal) => {
      const [{ maxSocketPath, serveUnix }, { snapshotService }] = await Promise.all([import('#grpc/unixServer'), import('#store/serve/snapshotMethods')])
      if (Buffer.byteLength(paths.storeSocket) > maxSocketPath) {
        log.warn('The path of the cluster is too long for a socket: it must be stopped for a snapshot', { path: paths.storeSocket })
        return aborted(signal)
      }
      const server = await serveUnix(paths.storeSocket, [snapshotService(store, paths.store)])
      await aborted(signal)
      await server.close()
    },
  }
}
