/** Whether a component of a local cluster asks for a lease before it works (L5, pure). */
import type { LeaseSettings } from '../../component/leading.ts'
import { type GivenLease, leaseOf } from '../../component/options/leaderElection.ts'
import { sharedEtcdOf } from '../../join/publishedConfiguration.ts'
import type { ClusterState } from '../../localCluster/clusterState.ts'
import { isReplicated } from '../../localCluster/controlPlanes.ts'

/**
 * Over an etcd that other machines may reach, further control planes can join. Any other single server asks for no lease unless a flag says so.
 * @throws Error when several servers would act at once
 */
export function localLease(state: ClusterState, given: GivenLease, byDefault: Parameters<typeof leaseOf>[1]): LeaseSettings {
  const lease = leaseOf(given, { ...byDefault, leaderElect: isReplicated(state) || sharedEtcdOf(state) !== undefined })
  if (isReplicated(state) && !lease.leaderElect) throw new Error('--leader-elect=false: the controllers and schedulers of all servers would act at once')
  return lease
}
