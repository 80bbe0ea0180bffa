/**
 * `skiff etcd member` (L5): lists the members of a cluster's own etcd, and changes them one at a time. A new member begins as a learner, which has no vote
 * until it has the data: a majority is never lost by an addition. Upstream: etcdctl member, kubeadm's etcd phase of join.
 */
import fs from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import type { EtcdMemberDetails } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { createEtcdAdministration, type EtcdAdministration, type EtcdMember } from '#store/drivers/etcd/administration'
import { stopMember } from '../localCluster/clusterProcesses.ts'
import { type ClusterPaths, type ClusterState, writeState } from '../localCluster/clusterState.ts'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { runningProcess } from '../localCluster/processes.ts'
import { runningServers } from '../localCluster/runningServers.ts'
import { ensureEtcdPki } from '../pki/etcdPki.ts'
import { clientUrlOf, type EtcdMemberPlan, type EtcdPlan, etcdMemberPaths, etcdPkiFolder, membersAskedBy, nextNumberOf, peerUrlOf } from './members.ts'
import { addLearner, removeById } from './membership.ts'
import { planMember } from './planEtcd.ts'

const startMs = 30_000
const promotionMs = 120_000
const pollMs = 250
/** Time in which a start that had begun before the member was removed has written its pid. */
const lateStartMs = 500

/** As etcdctl prints ids. */
const hexadecimal = (id: string) => BigInt(id).toString(16)

function etcdOf({ etcd, name }: ClusterState): EtcdPlan {
  if (etcd) return etcd
  throw new CommandError('usage', `cluster "${name}" has no etcd of its own`, { hint: 'a cluster gets one when it is made: skiff up NAME --etcd 3' })
}

/** @param except a member that is not asked */
async function withEtcd<T>(
  deps: LocalClusterDeps,
  paths: ClusterPaths,
  state: ClusterState,
  use: (etcd: EtcdAdministration) => Promise<T>,
  except = '',
): Promise<T> {
  const members = etcdOf(state).members.filter(({ name }) => name !== except)
  const { ca, client } = await ensureEtcdPki(etcdPkiFolder(paths), deps.clock.now())
  const etcd = createEtcdAdministration(members.map(clientUrlOf), { ca: ca.cert, ...client })
  try {
    return await use(etcd)
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError('internal', `etcd of cluster "${state.name}": ${messageOf(error)}`, { cause: error })
  } finally {
    etcd.close()
  }
}

/** The members as etcd sees them; those that do not answer have no version and sizes. @throws CommandError when no member answers */
export function etcdMembers(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState): Promise<EtcdMemberDetails[]> {
  return withEtcd(deps, paths, state, async (etcd) => {
    const known = await etcd.members()
    return Promise.all(
      known.map(async (member): Promise<EtcdMemberDetails> => {
        const plan = planOf(etcdOf(state), member)
        const status = plan && (await etcd.status(clientUrlOf(plan)).catch(() => undefined))
        return {
          id: hexadecimal(member.id),
          name: member.name || (plan?.name ?? ''),
          role: member.isLearner ? 'learner' : status === undefined ? 'unknown' : status.isLeader ? 'leader' : 'follower',
          url: plan ? clientUrlOf(plan) : member.clientUrls.join(','),
          version: status?.version ?? '',
          dbBytes: status?.dbSize,
          dbBytesInUse: status?.dbSizeInUse,
        }
      }),
    )
  })
}

/** A member that has not been started has no name yet. */
function planOf({ members }: EtcdPlan, member: EtcdMember): EtcdMemberPlan | undefined {
  // The embedded store has no peers, and so no URL for them.
  return members.find((plan) => member.peerUrls.includes(peerUrlOf(plan)) || plan.name === member.name)
}

function findMember(plan: EtcdPlan, known: readonly EtcdMember[], name: string): EtcdMember {
  const found = known.find((member) => (member.name || planOf(plan, member)?.name) === name)
  if (found) return found
  const names = known.map((member) => member.name || planOf(plan, member)?.name || hexadecimal(member.id))
  throw new CommandError('notFound', `etcd has no member "${name}"`, { hint: `its members are ${names.join(', ')}` })
}

/**
 * Adds a learner on free ports, waits until it runs, and gives it a vote as soon as it has the data, unless it is to stay a learner.
 * @returns its name. @throws CommandError timeout, or internal with etcd's reason
 */
export function addMember(
  deps: LocalClusterDeps,
  paths: ClusterPaths,
  state: ClusterState,
  { learner }: { readonly learner: boolean },
  progress: Progress,
): Promise<string> {
  return withEtcd(deps, paths, state, async (etcd) => {
    const before = etcdOf(state)
    if (before.embedded) throw new CommandError('usage', `cluster "${state.name}" was made with --etcd embedded, which has one member`)
    if (!(await runningProcess(paths.supervisorPid))) {
      throw new CommandError('unmetPrerequisite', `cluster "${state.name}" does not run`, { hint: `start it first: skiff start ${state.name}` })
    }
    const planned = await planMember(before)
    const known = await addLearner(deps.clock, etcd, peerUrlOf(planned))
    const joined = known.map((member) => `${member.name || planned.name}=${member.peerUrls[0]}`).join(',')
    const plan = { ...before, members: [...before.members, { ...planned, joined, addedMs: deps.clock.now() }] }
    await writeState(paths, { ...state, etcd: { ...plan, nextNumber: nextNumberOf(plan) } })
    const { name } = planned
    await progress.step(`Member ${name} starts`, () => untilAnswers(deps, `an answer of ${name}`, startMs, () => etcd.status(clientUrlOf(planned))))
    if (!learner) {
      await progress.step(`Member ${name} has the data and votes`, () => promote(deps, etcd, findMember(plan, known, name).id))
    }
    return name
  })
}

/** Gives a learner a vote as soon as it has the data. @throws CommandError notFound, alreadyExists or timeout */
export function promoteMember(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, name: string, progress: Progress): Promise<void> {
  return withEtcd(deps, paths, state, async (etcd) => {
    const member = findMember(etcdOf(state), await etcd.members(), name)
    if (!member.isLearner) throw new CommandError('alreadyExists', `member "${name}" is no learner: it votes already`)
    await progress.step(`Member ${name} has the data and votes`, () => promote(deps, etcd, member.id))
  })
}

/** Lets a member lead, such as before maintenance of the present leader. @throws CommandError notFound, conflict for a learner, or timeout */
export function moveLeader(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, name: string, progress: Progress): Promise<void> {
  return withEtcd(deps, paths, state, async (etcd) => {
    const plan = etcdOf(state)
    const member = findMember(plan, await etcd.members(), name)
    if (member.isLearner) {
      throw new CommandError('conflict', `member "${name}" is a learner: it has no vote`, { hint: `skiff etcd member promote ${name} gives it one` })
    }
    await progress.step(`Member ${name} leads`, () => untilAnswers(deps, `that member ${name} leads`, startMs, () => lead(plan, etcd, name, member.id)))
  })
}

/** @throws Error when another member leads, or none */
async function lead({ members }: EtcdPlan, etcd: EtcdAdministration, name: string, id: string): Promise<void> {
  const leaders = await Promise.all(members.map(async (one) => ((await etcd.status(clientUrlOf(one)).catch(() => undefined))?.isLeader ? [one] : [])))
  const leader = leaders.flat()[0]
  if (!leader) throw new Error('the members have no leader')
  if (leader.name === name) return
  await etcd.moveLeader(clientUrlOf(leader), id)
  const wanted = members.find((one) => one.name === name)
  if (!wanted || !(await etcd.status(clientUrlOf(wanted))).isLeader) throw new Error('another member leads')
}

/**
 * Rewrites the databases of the members without their free pages, one after the other, the leader last. A member answers nothing meanwhile.
 * @param name one member; undefined: all. @throws CommandError notFound, or conflict when another member does not answer
 */
export function defragmentMembers(
  deps: LocalClusterDeps,
  paths: ClusterPaths,
  state: ClusterState,
  name: string | undefined,
  progress: Progress,
): Promise<void> {
  return withEtcd(deps, paths, state, async (etcd) => {
    const plan = etcdOf(state)
    if (name !== undefined) findMember(plan, await etcd.members(), name)
    const states = await Promise.all(plan.members.map(async (member) => ({ member, status: await etcd.status(clientUrlOf(member)).catch(() => undefined) })))
    const silent = states.filter(({ member, status }) => member.name !== name && status === undefined).map(({ member }) => member.name)
    if (silent.length > 0) {
      throw new CommandError('conflict', `members of etcd do not answer: ${silent.join(', ')}; another one must not pause now`, {
        hint: 'skiff etcd member ls',
      })
    }
    const due = states.filter(({ member }) => name === undefined || member.name === name)
    for (const { member } of due.sort((a, b) => Number(a.status?.isLeader ?? false) - Number(b.status?.isLeader ?? false))) {
      await progress.step(`Member ${member.name} is rewritten without free pages`, () => etcd.defragment(clientUrlOf(member)))
    }
  })
}

/** A learner that lags is refused: ask until it has caught up. */
function promote(deps: LocalClusterDeps, etcd: EtcdAdministration, id: string): Promise<void> {
  return untilAnswers(deps, 'the promotion of the learner', promotionMs, () => etcd.promote(id))
}

async function untilAnswers<T>({ clock }: LocalClusterDeps, what: string, deadlineMs: number, ask: () => Promise<T>): Promise<T> {
  const deadline = clock.monotonicMs() + deadlineMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (clock.monotonicMs() > deadline) {
        throw new CommandError('timeout', `${what} did not happen within ${deadlineMs / 1000} s: ${messageOf(error)}`, { cause: error })
      }
    }
    await clock.sleep(pollMs)
  }
}

/**
 * Refuses a removal that would leave the running server no member to ask: it asks those of its start, and a learner answers no reads.
 * @param known the members as etcd sees them. @throws CommandError conflict
 */
export function refuseLastAsked(cluster: string, plan: EtcdPlan, known: readonly EtcdMember[], server: { readonly startedMs?: number }, name: string): void {
  const learners = known.filter(({ isLearner }) => isLearner).map((member) => planOf(plan, member)?.name)
  if (membersAskedBy(plan, server).some((asked) => asked.name !== name && !learners.includes(asked.name))) return
  throw new CommandError('conflict', `the API server asks only member "${name}" of those that it knows, and learns of others when it starts`, {
    hint: `stop and start the cluster first: skiff stop ${cluster}; skiff start ${cluster}`,
  })
}

/** Takes a member out, which is not asked itself: it would end before it answers. Its process and data go. @throws CommandError notFound or conflict */
export async function removeMember(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, name: string, progress: Progress): Promise<void> {
  const plan = etcdOf(state)
  if (plan.members.every((member) => member.name === name)) {
    throw new CommandError('conflict', `member "${name}" is the last one: it has all the data`, { hint: `skiff delete ${state.name} removes the cluster` })
  }
  const remove = async (etcd: EtcdAdministration) => {
    const known = await etcd.members()
    const member = findMember(plan, known, name)
    for (const server of (await runningServers(paths, state)).values()) refuseLastAsked(state.name, plan, known, server, name)
    await progress.step(`Taking member ${name} out`, () => takeOut(() => removeById(deps.clock, etcd, member.id), paths, state, plan, name))
    const files = etcdMemberPaths(paths, name)
    await progress.step('Removing its data', async () => {
      await stopMember(deps, files.pid)
      await deps.clock.sleep(lateStartMs)
      await stopMember(deps, files.pid)
      await fs.rm(files.dir, { recursive: true, force: true })
    })
  }
  return withEtcd(deps, paths, state, remove, name)
}

/** The description first: the supervisor must not start the member again, which ends when it learns that it is removed. */
async function takeOut(remove: () => Promise<void>, paths: ClusterPaths, state: ClusterState, plan: EtcdPlan, name: string): Promise<void> {
  const members = plan.members.filter((one) => one.name !== name)
  await writeState(paths, { ...state, etcd: { ...plan, members, nextNumber: nextNumberOf(plan) } })
  try {
    await remove()
  } catch (error) {
    await writeState(paths, state)
    throw error
  }
}
