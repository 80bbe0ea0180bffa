/**
 * Keeps the members of a local cluster's own etcd running (L5). The description of the cluster says which there are: one that is added is started, one that is
 * removed is left alone, while this process runs.
 */
import { makePrivateDirectory } from '#host/files'
import { type EtcdMemberPlan, etcdCommand, etcdMemberPaths } from '../etcd/members.ts'
import { followProcess } from '../layouts/foreignProcess.ts'
import { ownProgram } from '../layouts/processTools.ts'
import { type FollowedProcess, superviseProcess } from '../layouts/superviseProcess.ts'
import { readState } from '../localCluster/clusterState.ts'
import { runningProcess, spawnDetached } from '../localCluster/processes.ts'
import { serverFlags } from '../localCluster/serverFlags.ts'
import { retriedStart, type SupervisorTools, writeDown } from './supervisorTools.ts'

const lookEveryMs = 1000

export async function keepEtcd(tools: SupervisorTools, signal: AbortSignal): Promise<void> {
  const kept = new Map<string, AbortController>()
  const ends: Promise<void>[] = []
  while (!signal.aborted) {
    const members = await membersNow(tools)
    for (const member of members ?? []) {
      if (kept.has(member.name)) continue
      const stop = new AbortController()
      kept.set(member.name, stop)
      ends.push(keepMember(tools, member, stop.signal))
    }
    for (const [name, stop] of kept) {
      if (!members || members.some((member) => member.name === name)) continue
      stop.abort()
      kept.delete(name)
    }
    await tools.clock.sleep(lookEveryMs, signal).catch(() => {})
  }
  for (const stop of kept.values()) stop.abort()
  await Promise.all(ends)
}

/** Undefined when the description cannot be read at present. */
async function membersNow({ paths, log }: SupervisorTools): Promise<readonly EtcdMemberPlan[] | undefined> {
  try {
    return (await readState(paths))?.etcd?.members
  } catch (error) {
    log.error(error, 'The members of etcd could not be read')
    return undefined
  }
}

function keepMember(tools: SupervisorTools, member: EtcdMemberPlan, signal: AbortSignal): Promise<void> {
  const { paths, clock, log } = tools
  const files = etcdMemberPaths(paths, member.name)
  const start = async (): Promise<FollowedProcess | undefined> => {
    const running = await runningProcess(files.pid)
    return running ? followProcess(running, clock) : startMember(tools, member)
  }
  return superviseProcess<FollowedProcess>(
    {
      start: retriedStart(tools, member.name, start, signal),
      onMissing: () => {},
      onStarted: async ({ pid }) => log.info('A member of etcd runs', { member: member.name, pid }),
      onEnded: async (child, stopped) => (stopped || !(await isWanted(tools, member)) ? undefined : writeDown(tools, member.name, child, files.log)),
      // It outlives this process.
      end: async () => {},
    },
    tools,
    signal,
  )
}

/** False for a member that has been removed meanwhile. */
async function isWanted(tools: SupervisorTools, member: EtcdMemberPlan): Promise<boolean> {
  return (await membersNow(tools))?.some(({ name }) => name === member.name) ?? true
}

async function startMember(tools: SupervisorTools, member: EtcdMemberPlan): Promise<FollowedProcess | undefined> {
  const { paths, clock } = tools
  const etcd = (await readState(paths))?.etcd
  if (!etcd || !(await isWanted(tools, member))) return undefined
  const files = etcdMemberPaths(paths, member.name)
  await makePrivateDirectory(files.data)
  const [node = '', ...entry] = ownProgram()
  return spawnDetached(etcdCommand(paths, etcd, member, [node, ...serverFlags(), ...entry]), { logFile: files.log, pidFile: files.pid, clock })
}
