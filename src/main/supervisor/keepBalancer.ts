/** Keeps the balancer of a local cluster with several servers running (L5). One that runs already is taken over. */
import { followProcess } from '../layouts/foreignProcess.ts'
import { ownProgram } from '../layouts/processTools.ts'
import { type FollowedProcess, superviseProcess } from '../layouts/superviseProcess.ts'
import { runningProcess, spawnDetached } from '../localCluster/processes.ts'
import { retriedStart, type SupervisorTools, writeDown } from './supervisorTools.ts'

export function keepBalancer(tools: SupervisorTools, signal: AbortSignal): Promise<void> {
  const { paths, clock, log, verbosity } = tools
  const start = async (): Promise<FollowedProcess> => {
    const running = await runningProcess(paths.balancerPid)
    if (running) return followProcess(running, clock)
    const words = [...ownProgram(), 'balancer', '--cluster-dir', paths.dir, '--v', String(verbosity)]
    return spawnDetached(words, { logFile: paths.balancerLog, pidFile: paths.balancerPid, clock })
  }
  return superviseProcess<FollowedProcess>(
    {
      start: retriedStart(tools, 'balancer', start, signal),
      onMissing: () => {},
      onStarted: async ({ pid }) => log.info('The balancer runs', { pid }),
      onEnded: async (balancer, stopped) => (stopped ? undefined : writeDown(tools, 'balancer', balancer, paths.balancerLog)),
      // It outlives this process.
      end: async () => {},
    },
    tools,
    signal,
  )
}
