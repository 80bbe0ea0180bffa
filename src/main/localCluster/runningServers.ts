/** The servers of a local cluster that run (L5). */
import { least } from '#base/extremes'
import type { ClusterPaths, ClusterState } from './clusterState.ts'
import { serversOf } from './controlPlanes.ts'
import { runningProcess, type WrittenProcess } from './processes.ts'

/** By name, in the order of the description. */
export async function runningServers(paths: ClusterPaths, state: ClusterState): Promise<ReadonlyMap<string, WrittenProcess>> {
  const found = await Promise.all(serversOf(state).map(async ({ name }) => [name, await runningProcess(paths.server(name).pid)] as const))
  return new Map(found.flatMap(([name, running]) => (running ? [[name, running] as const] : [])))
}

/** The servers that run read the cluster's description and its certificates again. */
export async function tellServers(paths: ClusterPaths, state: ClusterState): Promise<void> {
  for (const { pid } of (await runningServers(paths, state)).values()) process.kill(pid, 'SIGHUP')
}

export async function runsServer(paths: ClusterPaths, state: ClusterState): Promise<boolean> {
  return (await runningServers(paths, state)).size > 0
}

/** When the server that has run for longest was started: what a node wrote before is not about this run. 0 when none runs. */
export function earliestStartMs(servers: ReadonlyMap<string, WrittenProcess>): number {
  const starts = [...servers.values()].map(({ startedMs = 0 }) => startedMs)
  return starts.length === 0 ? 0 : least(starts)
}
