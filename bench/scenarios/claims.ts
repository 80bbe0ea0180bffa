/** Claims of simulated nodes: the controllers' work alone, since the volumes have no content. */
import type { Measurement, Scenario } from '../scenario.ts'
import { claimManifest, claimsPath, watchBound } from '../tools/claims.ts'
import { createLoadClient } from '../tools/load.ts'
import { type LocalCluster, runSkiff, withCluster } from '../tools/localCluster.ts'

const nodeCount = 100
const claimCount = 1000

export const claims: Scenario = {
  name: 'claims',
  about: `${claimCount} claims of the host path CSI driver on ${nodeCount} simulated nodes`,
  run: ({ dir }) => withCluster(dir, 'claims', ['--runtime', 'simulated', '--simulated-nodes', String(nodeCount)], measure),
}

/** Claims of a class that binds at once need no pods. */
async function measure(cluster: LocalCluster): Promise<Measurement[]> {
  await runSkiff(cluster.home, 'addon', 'enable', 'csi-hostpath', '--cluster', cluster.name)
  const client = await createLoadClient(cluster.address)
  try {
    const storageClass = { metadata: { name: 'at-once' }, provisioner: 'hostpath.csi.skiff.dev', volumeBindingMode: 'Immediate' }
    await client.ask('POST', '/apis/storage.k8s.io/v1/storageclasses', { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', ...storageClass })
    const allBound = await watchBound(client, claimCount)
    const started = performance.now()
    const body = (index: number) => Buffer.from(JSON.stringify(claimManifest(`claim-${index}`, 'at-once')))
    await client.loop(claimCount, 64, (index) => ({ method: 'POST', path: claimsPath, contentType: 'application/json', body: body(index) }))
    const seconds = ((await allBound()) - started) / 1000
    return [
      {
        what: `${claimCount} claims on ${nodeCount} simulated nodes, the first creation to the last Bound`,
        unit: 's',
        values: [seconds],
        target: { atMost: 3 },
      },
    ]
  } finally {
    client.close()
  }
}
