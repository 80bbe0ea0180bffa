/** How a user reaches a local cluster, as its administrator (L5). */
import type { KubeconfigEntry } from '#cli/kubeconfigFile'
import type { Pki } from '../pki/pki.ts'
import type { ClusterState } from './clusterState.ts'

export function kubeconfigEntry(state: ClusterState, pki: Pki): KubeconfigEntry {
  return { name: `skiff-${state.name}`, server: `https://127.0.0.1:${state.port}`, ca: pki.ca.cert, clientCert: pki.admin.cert, clientKey: pki.admin.key }
}
