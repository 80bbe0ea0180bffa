/** What runs of a local cluster (L5): its processes, its nodes' readiness since they were last started, and how often they ended unasked. */
import type { RevisionHistory } from '#api/debug/revisions'
import { parseTime } from '#base/time'
import type { ClusterStatus, ProcessStatus } from '#cli/clusterManager'
import { freeBytesOf, readTextIfExists } from '#host/files'
import { childrenOf, isRunning, programOf } from '#host/processes'
import { type BackupPlan, nextBackup } from '../backup/backupPlan.ts'
import { readBackups } from '../backup/backupRecord.ts'
import { membersHealth } from '../etcd/health.ts'
import { clientUrlOf, etcdMemberPaths } from '../etcd/members.ts'
import type { EtcdPki } from '../pki/etcdPki.ts'
import { addressesOf, nodeNetwork } from '../vnode/clusterNetwork.ts'
import { vnodeProcess, vnodeStartedMs } from '../vnode/vnode.ts'
import { type ApiProbe, createApiProbe, type NodeReadiness, nodeReadiness } from './apiProbe.ts'
import type { ClusterPaths, ClusterState } from './clusterState.ts'
import { isReplicated, serversOf } from './controlPlanes.ts'
import type { LocalClusterDeps } from './deps.ts'
import { runningProcess } from './processes.ts'
import { readRestarts } from './restartRecord.ts'
import { earliestStartMs, runningServers } from './runningServers.ts'
import { serverStatuses } from './serverStatus.ts'
import { loadSharedPki } from './sharedPki.ts'
import { simulatedNodesOf } from './simulatedPlan.ts'

/** Asks the server for the nodes' readiness; without an answer, no node is ready. */
export async function statusOf(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState): Promise<ClusterStatus> {
  const [running, supervisor] = await Promise.all([runningServers(paths, state), runningProcess(paths.supervisorPid)])
  const { pki, etcdPki } = await loadSharedPki(paths, state, deps.clock)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    const answering = running.size > 0 && (await probe.get('/readyz'))?.status === 200
    const readiness = (answering ? await nodeReadiness(probe) : undefined) ?? new Map<string, NodeReadiness>()
    const startedMs = earliestStartMs(running)
    const nodes = [
      ...(await Promise.all(
        state.nodes.map(async (node) => ({
          name: node.name,
          runtime: 'containerd' as const,
          ready: isReadySince(readiness.get(node.name), Math.max(startedMs, await vnodeStartedMs(paths.node(node.name)))),
          address: state.network ? (addressesOf(nodeNetwork(state.network, state.id, node.index))[0] ?? '') : '',
        })),
      )),
      ...simulatedNodesOf(state).map(({ name }) => ({
        name,
        runtime: 'simulated' as const,
        ready: isReadySince(readiness.get(name), startedMs),
        address: readiness.get(name)?.address ?? '',
      })),
    ]
    return {
      name: state.name,
      server: `https://127.0.0.1:${state.port}`,
      running: running.size > 0,
      supervised: supervisor !== undefined,
      ready: answering && nodes.every((node) => node.ready),
      nodes,
      servers: isReplicated(state) ? await serverStatuses(deps, state, running, pki, answering ? probe : undefined) : [],
      etcd: await etcdMembers(deps, state, etcdPki),
      pids: [
        ...(supervisor ? [{ role: 'supervisor' as const, pid: supervisor.pid }] : []),
        ...(await balancerProcess(paths, state)),
        ...serversOf(state).flatMap(({ name }) => serverProcess(state, name, running.get(name)?.pid)),
        ...(await etcdProcesses(paths, state)),
        ...(await nodeProcesses(paths, state)),
      ],
      history: answering ? await historyOf(probe) : undefined,
      restarts: Object.entries(await readRestarts(paths)).map(([what, one]) => ({ what, ...one })),
      ...(state.backup ? { backups: await backupsOf(deps, paths, state.backup) } : {}),
      directory: paths.dir,
      freeBytes: await freeBytesOf(paths.dir),
    }
  } finally {
    probe.close()
  }
}

async function backupsOf({ clock }: LocalClusterDeps, paths: ClusterPaths, plan: BackupPlan): Promise<ClusterStatus['backups']> {
  const { place, files, failure } = await readBackups(paths)
  const last = place === plan.place ? files.at(-1) : undefined
  return { schedule: plan.schedule, place: plan.place, last, failure, nextMs: nextBackup(plan, clock.now()) }
}

async function historyOf(probe: ApiProbe): Promise<ClusterStatus['history']> {
  const answer = await probe.get('/skiff/revisions')
  if (answer?.status !== 200) return undefined
  const { oldestTime, bytes } = JSON.parse(answer.body) as RevisionHistory
  const sinceMs = parseTime(oldestTime ?? '')
  return sinceMs === undefined ? undefined : { sinceMs, bytes }
}

/** Ready by a heartbeat that is not older than the node's and the server's last start: an older condition says nothing about now. */
export function isReadySince(node: NodeReadiness | undefined, startedMs: number): boolean {
  // Heartbeats are in whole seconds.
  return node?.ready === true && node.heartbeatMs >= Math.floor(startedMs / 1000) * 1000
}

function serverProcess(state: ClusterState, name: string, pid: number | undefined): ProcessStatus[] {
  return pid === undefined ? [] : [{ role: 'server', pid, ...(isReplicated(state) ? { node: name } : {}) }]
}

async function balancerProcess(paths: ClusterPaths, state: ClusterState): Promise<ProcessStatus[]> {
  const running = isReplicated(state) ? await runningProcess(paths.balancerPid) : undefined
  return running ? [{ role: 'balancer', pid: running.pid }] : []
}

/** The processes of the nodes: agents as the server wrote them down, process 1 and containerd from the node itself. */
async function nodeProcesses(paths: ClusterPaths, state: ClusterState): Promise<ProcessStatus[]> {
  const lists = await Promise.all(serversOf(state).map(async ({ name }) => JSON.parse((await readTextIfExists(paths.server(name).processes)) || '[]')))
  const written = lists.flat() as (ProcessStatus & { startTime: string })[]
  const alive = await Promise.all(written.map((one) => isRunning({ pid: one.pid, startTime: one.startTime })))
  const agents = written.filter((_, i) => alive[i]).map(({ role, pid, node }) => ({ role, pid, ...(node === undefined ? {} : { node }) }))
  const own = await Promise.all(
    state.nodes.map(async (node): Promise<ProcessStatus[]> => {
      const init = await vnodeProcess(paths.node(node.name))
      if (!init) return []
      const children = await childrenOf(init.pid)
      const programs = await Promise.all(children.map(programOf))
      const containerd = children.find((_, i) => programs[i] === 'containerd')
      return [
        { role: 'init' as const, pid: init.pid, node: node.name },
        ...(containerd ? [{ role: 'containerd' as const, pid: containerd, node: node.name }] : []),
      ]
    }),
  )
  return [...agents, ...own.flat()]
}

async function etcdMembers({ clock }: LocalClusterDeps, { etcd }: ClusterState, pki: EtcdPki | undefined): Promise<ClusterStatus['etcd']> {
  if (!etcd || !pki) return []
  const health = await membersHealth(etcd.members, pki, clock)
  return etcd.members.map((member, at) => ({ name: member.name, healthy: health[at] === true, url: clientUrlOf(member) }))
}

async function etcdProcesses(paths: ClusterPaths, { etcd }: ClusterState): Promise<ProcessStatus[]> {
  const found = await Promise.all((etcd?.members ?? []).map(async ({ name }) => ({ name, running: await runningProcess(etcdMemberPaths(paths, name).pid) })))
  return found.flatMap(({ name, running }) => (running ? [{ role: 'etcd' as const, pid: running.pid, node: name }] : []))
}
