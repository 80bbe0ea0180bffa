/** Whether the members of a cluster's own etcd are healthy (L5): each does a read that needs a majority. Upstream: etcd's /health, kubeadm's probes. */
import type { Clock } from '#base/clock'
import { createApiProbe } from '../localCluster/apiProbe.ts'
import type { EtcdPki } from '../pki/etcdPki.ts'
import type { EtcdMemberPlan } from './members.ts'

/** In the order of the members; false also for one that does not answer. */
export function membersHealth(members: readonly EtcdMemberPlan[], pki: EtcdPki, clock: Clock): Promise<boolean[]> {
  return Promise.all(members.map((member) => isHealthy(member, pki, clock)))
}

async function isHealthy({ clientPort }: EtcdMemberPlan, { ca, client }: EtcdPki, clock: Clock): Promise<boolean> {
  const probe = createApiProbe(clientPort, ca.cert, client, clock)
  try {
    const answer = await probe.get('/health')
    return answer?.status === 200
  } finally {
    probe.close()
  }
}
