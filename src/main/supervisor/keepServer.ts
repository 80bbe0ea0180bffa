/** Keeps a server of a local cluster running (L5). One that runs already is taken over. */
import { membersHealth } from '../etcd/health.ts'
import { etcdPkiFolder } from '../etcd/members.ts'
import { followProcess } from '../layouts/foreignProcess.ts'
import { ownProgram } from '../layouts/processTools.ts'
import { type FollowedProcess, superviseProcess } from '../layouts/superviseProcess.ts'
import { readState } from '../localCluster/clusterState.ts'
import { runningProcess, spawnDetached } from '../localCluster/processes.ts'
import { serverFlags } from '../localCluster/serverFlags.ts'
import { ensureEtcdPki } from '../pki/etcdPki.ts'
import { retriedStart, type SupervisorTools, writeDown } from './supervisorTools.ts'

/** @param name one of the cluster's servers */
export function keepServer(tools: SupervisorTools, name: string, signal: AbortSignal): Promise<void> {
  const { paths, clock, log } = tools
  const files = paths.server(name)
  const start = async (): Promise<FollowedProcess | undefined> => {
    const running = await runningProcess(files.pid)
    if (running) return followProcess(running, clock)
    return (await isStoreThere(tools)) ? startServer(tools, name) : undefined
  }
  return superviseProcess<FollowedProcess>(
    {
      start: retriedStart(tools, name, start, signal),
      onMissing: () => log.info('A server waits until it can be started; a cluster with its own etcd needs a majority of the members', { server: name }),
      onStarted: async ({ pid }) => log.info('A server runs', { server: name, pid }),
      onEnded: async (server, stopped) => (stopped ? undefined : writeDown(tools, name, server, files.log)),
      // It outlives this process.
      end: async () => {},
    },
    tools,
    signal,
  )
}

function startServer({ paths, verbosity, clock }: SupervisorTools, name: string): Promise<FollowedProcess> {
  const { log, pid } = paths.server(name)
  const [node = '', ...entry] = ownProgram()
  const words = [node, ...serverFlags(), ...entry, 'server', '--cluster-dir', paths.dir, '--name', name, '--v', String(verbosity)]
  return spawnDetached(words, { logFile: log, pidFile: pid, clock })
}

/** A server without its etcd would end at once. A healthy member has read with a majority. */
async function isStoreThere({ paths, clock }: SupervisorTools): Promise<boolean> {
  const { etcd } = (await readState(paths)) ?? {}
  if (!etcd) return true
  const health = await membersHealth(etcd.members, await ensureEtcdPki(etcdPkiFolder(paths), clock.now()), clock)
  return health.includes(true)
}
