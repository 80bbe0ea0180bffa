/** Keeps a real node of a local cluster running (L5): after its process 1 has ended, the node starts again, as after a reboot. */
import path from 'node:path'
import { followProcess } from '../layouts/foreignProcess.ts'
import { type FollowedProcess, superviseProcess } from '../layouts/superviseProcess.ts'
import { ensureNode } from '../localCluster/clusterNodes.ts'
import type { RealNode } from '../localCluster/clusterState.ts'
import { type SupervisorTools, writeDown } from './supervisorTools.ts'

/** After a start that failed: each makes mounts and processes. */
const failedPauseMs = 10_000

export function keepNode(tools: SupervisorTools, node: RealNode, signal: AbortSignal): Promise<void> {
  const { paths, state, clock, log } = tools
  return superviseProcess<FollowedProcess>(
    {
      start: async () => {
        try {
          return followProcess(await ensureNode(tools, paths, state, node), clock)
        } catch (error) {
          log.error(error, 'A node did not start', { node: node.name })
          await clock.sleep(failedPauseMs, signal).catch(() => {})
          return undefined
        }
      },
      onMissing: () => {},
      onStarted: async ({ pid }) => log.info('A node runs', { node: node.name, pid }),
      onEnded: async (init, stopped) => (stopped ? undefined : writeDown(tools, node.name, init, path.join(paths.node(node.name), 'init.log'))),
      // The node outlives this process.
      end: async () => {},
    },
    tools,
    signal,
  )
}
