/**
 * Changes of etcd's membership that are carried out once (L5). While there is no leader, etcd refuses a change or does not answer in time, and one that is not
 * answered may still be carried out: the list of members says whether it was.
 */
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { EtcdAdministration, EtcdMember } from '#store/drivers/etcd/administration'

type Membership = Pick<EtcdAdministration, 'members' | 'addLearner' | 'remove'>

const mostMs = 15_000
const pollMs = 250
/** The change has not begun: members have not been connected for five seconds, or have no leader. */
const notBegun = /unhealthy cluster|no leader|raft proposal dropped/
/** The change may have been carried out, by this call or by the one before. */
const unknown = /deadline exceeded|request timed out|Peer URLs already exists|member not found/

/** Adds a learner. @returns all members. @throws etcd's error when the change is refused, or has not been possible for 15 seconds */
export function addLearner(clock: Clock, etcd: Membership, peerUrl: string): Promise<readonly EtcdMember[]> {
  const added = (members: readonly EtcdMember[]) => members.some(({ peerUrls }) => peerUrls.includes(peerUrl))
  return changed(clock, etcd, () => etcd.addLearner(peerUrl), added)
}

/** Removes a member. @throws as addLearner */
export async function removeById(clock: Clock, etcd: Membership, id: string): Promise<void> {
  const remove = async () => {
    await etcd.remove(id)
    return undefined
  }
  await changed(clock, etcd, remove, (members) => members.every((member) => member.id !== id))
}

/** @param isDone whether the members are as the change makes them */
async function changed<T>(
  clock: Clock,
  etcd: Membership,
  change: () => Promise<T>,
  isDone: (members: readonly EtcdMember[]) => boolean,
): Promise<T | readonly EtcdMember[]> {
  const deadline = clock.monotonicMs() + mostMs
  for (;;) {
    try {
      return await change()
    } catch (error) {
      const message = messageOf(error)
      const isUnknown = unknown.test(message)
      if (isUnknown) {
        const members = await etcd.members().catch(() => undefined)
        if (members && isDone(members)) return members
      }
      if ((!isUnknown && !notBegun.test(message)) || clock.monotonicMs() > deadline) throw error
    }
    await clock.sleep(pollMs)
  }
}
