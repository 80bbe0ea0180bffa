/** Runs a cluster under systemd (L5): a unit starts it at boot and stops it. The supervisor starts its processes again, and the unit the supervisor. */
import type { Unit } from '../systemd/units.ts'
import type { ClusterState } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'

/** The name carries the cluster's id: clusters of two homes may have one name. */
export function unitNameOf({ id }: Pick<ClusterState, 'id'>): string {
  return `skiff-${id}.service`
}

/** KillMode=process: containers run on while the cluster is stopped. */
export function unitOf({ self, home }: Pick<LocalClusterDeps, 'self' | 'home'>, state: Pick<ClusterState, 'id' | 'name'>): Unit {
  return {
    name: unitNameOf(state),
    description: `Skiff cluster ${state.name}`,
    command: [...self, 'server', 'run', state.name],
    environment: { SKIFF_HOME: home },
    restart: 'on-failure',
    killMode: 'process',
  }
}
