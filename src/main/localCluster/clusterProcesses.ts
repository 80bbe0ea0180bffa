/** Starts and ends the background processes of a local cluster (L5): the supervisor, which starts the others. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { CommandError } from '#cli/exitCodes'
import { listIfExists } from '#host/files'
import { etcdFolder, etcdMemberPaths } from '../etcd/members.ts'
import { withOneThread } from '../supervisor/threadPool.ts'
import { type ClusterPaths, type ClusterState, markVariable } from './clusterState.ts'
import { isReplicated, serversOf } from './controlPlanes.ts'
import type { LocalClusterDeps } from './deps.ts'
import { portObstacle } from './freePort.ts'
import { endProcess, runningProcess, spawnDetached } from './processes.ts'

const serverGraceMs = 15_000
/** It leaves what it watches alone, so there is nothing to wait for. */
const supervisorGraceMs = 3000
const balancerGraceMs = 3000
const memberGraceMs = 10_000
/** The supervisor's heap: it keeps nothing but timers. Small young generations cost it no time. */
const supervisorFlags = ['--max-old-space-size=24', '--max-semi-space-size=1', '--single-threaded']

/** Starts the supervisor unless it runs. @throws CommandError conflict or unmetPrerequisite when a server or the balancer could not listen */
export async function ensureSupervisor(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, verbosity: number): Promise<void> {
  if (await runningProcess(paths.supervisorPid)) return
  // A process without a supervisor is taken over.
  const endpoint = isReplicated(state) ? paths.balancerPid : paths.server(serversOf(state)[0]?.name ?? '').pid
  if (!(await runningProcess(endpoint))) await checkPort(state)
  for (const { name, port } of isReplicated(state) ? serversOf(state) : []) {
    if (!(await runningProcess(paths.server(name).pid))) await checkPort({ name: state.name, port })
  }
  const [node = '', ...entry] = deps.self
  await spawnDetached([node, ...supervisorFlags, ...entry, 'supervise', '--cluster-dir', paths.dir, '--v', String(verbosity)], {
    logFile: paths.supervisorLog,
    pidFile: paths.supervisorPid,
    clock: deps.clock,
    environment: { [markVariable]: paths.dir, ...withOneThread(process.env) },
  })
}

/** @throws CommandError conflict or unmetPrerequisite when the port cannot be bound */
export async function checkPort({ port, name }: Pick<ClusterState, 'port' | 'name'>): Promise<void> {
  const obstacle = await portObstacle(port)
  if (obstacle === 'inUse') {
    throw new CommandError('conflict', `port ${port} of 127.0.0.1, which is to be that of cluster "${name}", is in use`, {
      hint: `end what listens there (ss -ltnp "sport = :${port}" names it), or make the cluster with another --port; one that is there is deleted first`,
    })
  }
  if (obstacle === 'notAllowed') {
    throw new CommandError('unmetPrerequisite', `this user has no right to listen on port ${port} of 127.0.0.1`, {
      hint: 'make the cluster with a --port from 1024 on, or run the command as root',
    })
  }
}

/** The supervisor first: it would start the others again. The servers before their balancer and their etcd. Agents and dialers end with the servers. */
export async function stopProcesses(deps: LocalClusterDeps, paths: ClusterPaths): Promise<void> {
  const end = async (pidFile: string, graceMs: number) => {
    const found = await runningProcess(pidFile)
    if (found) await endProcess(found, graceMs, deps.clock)
    await fs.rm(pidFile, { force: true })
  }
  await end(paths.supervisorPid, supervisorGraceMs)
  // All at once: a server that stays would take over the work of those that end.
  await Promise.all((await serverPidFiles(paths)).map((file) => end(file, serverGraceMs)))
  await end(paths.balancerPid, balancerGraceMs)
  const folder = etcdFolder(paths)
  // One after the other: a leader hands over to a member that runs, and would wait seconds for one that ends at the same time.
  for (const name of await listIfExists(folder)) await stopMember(deps, etcdMemberPaths(paths, name).pid)
}

/** Also of a cluster whose description cannot be read. */
async function serverPidFiles({ dir }: ClusterPaths): Promise<string[]> {
  return (await listIfExists(dir)).filter((file) => /^server(-\d+)?\.pid$/.test(file)).map((file) => path.join(dir, file))
}

/** A member of etcd writes its last snapshot before it ends. */
export async function stopMember({ clock }: Pick<LocalClusterDeps, 'clock'>, pidFile: string): Promise<void> {
  const found = await runningProcess(pidFile)
  if (found) await endProcess(found, memberGraceMs, clock)
  await fs.rm(pidFile, { force: true })
}
