/** The host path driver of Skiff, as a process of the cluster's node. The Go module proxy does not serve the module of kubernetes-csi's own host path driver. */
import type { LocalCluster } from '../../e2e/support/localCluster.ts'
import { applyAll } from './modules.ts'
import type { NodePrograms } from './nodePrograms.ts'

const kubelet = '/var/lib/kubelet'
export const driverName = 'hostpath.csi.skiff.dev'
/** The directory of the driver's socket, csi.sock, as the node has it. */
export const driverDirectory = `${kubelet}/plugins/h`

/** Resolves when the driver is started and its CSIDriver is there. */
export async function startDriver(cluster: LocalCluster, programs: NodePrograms, nodeName: string): Promise<void> {
  await programs.makeDirectory(driverDirectory)
  const places = ['--endpoint', `unix://${driverDirectory}/csi.sock`, '--state-dir', `${driverDirectory}/state`]
  await programs.start('csi-hostpath', ['--node-id', nodeName, ...places, '--plugin-registration-path', `${kubelet}/plugins_registry`])
  const spec = { attachRequired: true, podInfoOnMount: true, fsGroupPolicy: 'File', volumeLifecycleModes: ['Persistent'] }
  await applyAll(cluster, { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: driverName }, spec })
}
