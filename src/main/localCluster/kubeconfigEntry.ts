/** How a user reaches a local cluster, as its administrator (L5). */
import { contextName, type KubeconfigEntry } from '#cli/kubeconfigFile'
import type { Pki } from '../pki/pki.ts'
import type { ClusterState } from './clusterState.ts'

export function kubeconfigEntry({ name, port }: ClusterState, { ca, admin }: Pki): KubeconfigEntry {
  return { name: contextName(name), server: `https://127.0.0.1:${port}`, ca: ca.cert, clientCert: admin.cert, clientKey: admin.key }
}
