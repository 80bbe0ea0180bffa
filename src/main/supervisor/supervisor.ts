/**
 * The process that keeps a local cluster running (L5): it starts the servers, their balancer, the members of etcd and the real nodes again when they end unasked, and writes down how they ended.
 * It only watches: when it is killed, all of them run on, and the next `up` or `start` starts another one, which takes them over. Upstream's counterpart: systemd.
 */
import path from 'node:path'
import { createExec } from '#host/exec'
import { processTools } from '../layouts/processTools.ts'
import { clusterPaths, readState } from '../localCluster/clusterState.ts'
import { isReplicated, serversOf } from '../localCluster/controlPlanes.ts'
import { keepBalancer } from './keepBalancer.ts'
import { keepEtcd } from './keepEtcd.ts'
import { keepNode } from './keepNode.ts'
import { keepServer } from './keepServer.ts'
import type { SupervisorTools } from './supervisorTools.ts'
import { restoreThreadPoolSize } from './threadPool.ts'

/** Resolves when `signal` has aborted. What it watches is left running. */
export async function runSupervisor(clusterDir: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const paths = clusterPaths(path.resolve(clusterDir, '../..'), path.basename(clusterDir))
  const state = await readState(paths)
  if (!state) throw new Error(`${paths.state} is not there: a cluster is made with "skiff up"`)
  // Reading the file has created the pool, whose size no longer changes.
  restoreThreadPoolSize(process.env)
  const tools: SupervisorTools = { ...processTools('supervisor', { verbosity }), exec: createExec(), paths, state, verbosity }
  const keepers = [
    ...serversOf(state).map(({ name }) => keepServer(tools, name, signal)),
    ...(isReplicated(state) ? [keepBalancer(tools, signal)] : []),
    ...(state.etcd ? [keepEtcd(tools, signal)] : []),
    ...state.nodes.map((node) => keepNode(tools, node, signal)),
  ]
  await Promise.all(keepers)
}
