/**
 * The certificates of a local cluster, for its processes and the commands (L5): several may find at the same time that one is missing or due, and must not make
 * it at once.
 */
import type { Clock } from '#base/clock'
import { withLockFile } from '#host/lockFile'
import { etcdPkiFolder } from '../etcd/members.ts'
import { type EtcdPki, ensureEtcdPki } from '../pki/etcdPki.ts'
import { ensurePki, type Pki } from '../pki/pki.ts'
import { type ClusterPaths, type ClusterState, servingHosts } from './clusterState.ts'

/** Making certificates takes far less. */
const lockMs = 20_000

export interface SharedPki {
  readonly pki: Pki
  /** Absent: the cluster has no etcd of its own. */
  readonly etcdPki: EtcdPki | undefined
}

/** Made where they are missing and renewed where they are due, by one process at a time. @throws Error when another process holds the lock all the time */
export async function loadSharedPki(paths: ClusterPaths, state: ClusterState, clock: Clock): Promise<SharedPki> {
  const options = { clock, timeoutMs: lockMs, refuse: (pid: number | undefined) => new Error(`process ${pid ?? 'unknown'} holds ${paths.pkiLock}`) }
  return withLockFile(paths.pkiLock, options, async () => ({
    etcdPki: state.etcd && (await ensureEtcdPki(etcdPkiFolder(paths), clock.now())),
    pki: await ensurePki(paths.pki, servingHosts(state), clock.now()),
  }))
}

export async function loadPki({ clock }: { readonly clock: Clock }, paths: ClusterPaths, state: ClusterState): Promise<Pki> {
  return (await loadSharedPki(paths, state, clock)).pki
}
