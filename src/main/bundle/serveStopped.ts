/** Serves the store of a local cluster that is stopped, read-only (L5). */
import { storedTimes } from '#apiserver/registry/history'
import { noLog } from '#base/log'
import type { StillServer } from '#cli/bundles'
import type { LocalPrograms } from '#cli/command'
import { CommandError } from '#cli/exitCodes'
import { exists } from '#host/files'
import { openLocalStore, storeFile } from '../apiserver/openStore.ts'
import { clusterPaths, readState } from '../localCluster/clusterState.ts'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { runsServer } from '../localCluster/runningServers.ts'
import { etcdOf } from '../snapshot/saveSnapshot.ts'
import { startStillServer } from './stillServer.ts'

/** @throws CommandError when it runs, or has no store of its own */
export async function serveStopped({ clock, home }: LocalClusterDeps, local: Pick<LocalPrograms, 'certificate'>, name: string): Promise<StillServer> {
  const paths = clusterPaths(home, name)
  const state = await readState(paths)
  if (!state) throw new CommandError('notFound', `there is no cluster "${name}"`)
  if (await runsServer(paths, state))
    throw new CommandError('conflict', `cluster "${name}" is running`, { hint: `leave --offline out, or stop it: skiff stop ${name}` })
  const tools = { clock, log: noLog }
  if (await etcdOf({ paths, state, tools }))
    throw new CommandError('unmetPrerequisite', `cluster "${name}" has its objects in etcd, which only its server reads`, {
      hint: `start it: skiff start ${name}`,
    })
  if (!(await exists(storeFile(paths.store)))) throw new CommandError('notFound', `cluster "${name}" has no store yet: it was never started`)
  const store = await openLocalStore(paths.store, tools)
  try {
    const [certificate, times] = await Promise.all([local.certificate(), storedTimes(store)])
    return await startStillServer({ store, clock, certificate, times, what: 'a stopped cluster' })
  } catch (error) {
    await store.close()
    throw error
  }
}
