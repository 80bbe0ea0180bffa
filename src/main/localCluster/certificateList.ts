/** Which certificates a local cluster has, and until when (L5). */
import path from 'node:path'
import type { ClusterCertificate } from '#cli/clusterManager'
import { etcdPkiFolder } from '../etcd/members.ts'
import { readCertificates } from '../pki/pki.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'

/** The cluster's own folder first, then that of its etcd, then each real node's. */
export function certificateFolders(paths: ClusterPaths, state: ClusterState): string[] {
  return [paths.pki, ...(state.etcd ? [etcdPkiFolder(paths)] : []), ...state.nodes.map((node) => path.join(paths.node(node.name), 'pki'))]
}

/** Those of nodes are named after the node: `node-1/kubelet`. */
export async function certificatesOf(paths: ClusterPaths, state: ClusterState): Promise<ClusterCertificate[]> {
  const prefixes = ['', ...(state.etcd ? ['etcd/'] : []), ...state.nodes.map((node) => `${node.name}/`)]
  const found = await Promise.all(certificateFolders(paths, state).map(readCertificates))
  return found.flatMap((list, i) => list.map((one) => ({ ...one, name: `${prefixes[i]}${one.name}` })))
}
