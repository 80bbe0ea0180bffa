import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { EtcdMember } from '#store/drivers/etcd/administration'
import { addLearner, removeById } from './membership.ts'

const member = (id: string): EtcdMember => ({ id, name: id, peerUrls: [`https://${id}`], clientUrls: [], isLearner: false })

/** Each call fails with the next message of the list, before or after it is carried out; it succeeds when the list is empty. */
function etcdThat(...failures: readonly { readonly says: string; readonly carriedOut?: boolean }[]) {
  const left = [...failures]
  let members = [member('a'), member('b')]
  let calls = 0
  const attempt = (change: () => void) => {
    calls++
    const failure = left.shift()
    if (!failure || failure.carriedOut) change()
    if (failure) throw new Error(failure.says)
  }
  return {
    members: async () => members,
    addLearner: async () => {
      attempt(() => {
        members = [...members, member('c')]
      })
      return members
    },
    remove: async (id: string) =>
      attempt(() => {
        members = members.filter((one) => one.id !== id)
      }),
    calls: () => calls,
  }
}

/** Lets the clock run until the work has ended. */
async function ended<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const outcome = work.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  for (let i = 0; i < 100; i++) await clock.advance(250)
  const found = await outcome
  if ('error' in found) throw found.error
  return found.value
}

const slow = 'context deadline exceeded'

test('ETC-09 a member is added once, also when etcd did not answer in time though it had added it', async () => {
  const clock = new VirtualClock()
  const etcd = etcdThat({ says: 'etcdserver: no leader' }, { says: slow }, { says: slow, carriedOut: true })
  const members = await ended(clock, addLearner(clock, etcd, 'https://c'))
  assert.deepEqual([members.map(({ id }) => id), etcd.calls()], [['a', 'b', 'c'], 3])
})

test('ETC-09 a member is removed once, also when the first call was carried out after its deadline', async () => {
  const clock = new VirtualClock()
  const etcd = etcdThat({ says: 'etcdserver: unhealthy cluster' }, { says: slow, carriedOut: true })
  await ended(clock, removeById(clock, etcd, 'b'))
  assert.deepEqual([(await etcd.members()).map(({ id }) => id), etcd.calls()], [['a'], 2])
})

test('ETC-09 a change that etcd refuses fails at once, and one without a leader after a while', async () => {
  const clock = new VirtualClock()
  const refusing = etcdThat({ says: 'etcdserver: too many learner members in cluster' })
  await assert.rejects(ended(clock, addLearner(clock, refusing, 'https://c')), /too many learner/)
  assert.equal(refusing.calls(), 1)
  const leaderless = etcdThat(...Array.from({ length: 1_000 }, () => ({ says: 'etcdserver: no leader' })))
  await assert.rejects(ended(clock, addLearner(clock, leaderless, 'https://c')), /no leader/)
  assert.ok(leaderless.calls() > 50, `${leaderless.calls()}`)
})
