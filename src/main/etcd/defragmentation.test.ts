import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import type { EtcdAdministration } from '#store/drivers/etcd/administration'
import { defragmentDue, dueMembers, type MemberState } from './defragmentation.ts'

const mebibyte = 2 ** 20
const member = (url: string, size: number, used: number, isLeader = false): MemberState => ({
  url,
  dbSize: size * mebibyte,
  dbSizeInUse: used * mebibyte,
  isLeader,
})

const cases = [
  { name: 'a file that is half free is due', members: [member('a', 200, 100)], want: ['a'] },
  { name: 'a file that is mostly in use is not', members: [member('a', 200, 101)], want: [] },
  { name: 'a small file is not', members: [member('a', 99, 1)], want: [] },
  { name: 'the leader is the last one', members: [member('a', 200, 1, true), member('b', 200, 1), member('c', 200, 150)], want: ['b', 'a'] },
]
for (const { name, members, want } of cases) test(`ETC-13 ${name}`, () => assert.deepEqual(dueMembers(members), want))

/** Members whose leader changes when it is defragmented. */
function fakeEtcd(states: Map<string, MemberState>, failing?: string): { readonly etcd: EtcdAdministration; readonly order: string[] } {
  const order: string[] = []
  const etcd = {
    status: async (url: string) => {
      if (url === failing) throw new Error('it does not answer')
      return { ...(states.get(url) as MemberState), version: '', isLearner: false, errors: [] }
    },
    defragment: async (url: string) => {
      order.push(url)
      const { dbSizeInUse, isLeader } = states.get(url) as MemberState
      states.set(url, { url, dbSize: dbSizeInUse, dbSizeInUse, isLeader })
      // The first defragmentation makes another member the leader.
      if (order.length === 1) for (const one of states.values()) states.set(one.url, { ...one, isLeader: one.url === 'b' })
    },
  }
  return { etcd: etcd as unknown as EtcdAdministration, order }
}

test('ETC-13 each member is defragmented once, and a leader that was elected meanwhile is the last one', async () => {
  const states = new Map([member('a', 200, 1), member('b', 200, 1), member('c', 200, 1, true)].map((one) => [one.url, one]))
  const { etcd, order } = fakeEtcd(states)
  assert.deepEqual(await defragmentDue(['a', 'b', 'c'], etcd, noLog), ['a', 'c', 'b'])
  assert.deepEqual(order, ['a', 'c', 'b'])
})

test('ETC-13 no member is defragmented while one does not answer', async () => {
  const states = new Map([member('a', 200, 1), member('b', 200, 1)].map((one) => [one.url, one]))
  const { etcd, order } = fakeEtcd(states, 'b')
  await assert.rejects(defragmentDue(['a', 'b'], etcd, noLog), /it does not answer/)
  assert.deepEqual(order, [])
})
