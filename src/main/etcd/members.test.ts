import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '#cli/exitCodes'
import type { Exec } from '#host/exec'
import type { EtcdMember } from '#store/drivers/etcd/administration'
import { refuseLastAsked } from './changeMembers.ts'
import { etcdCommand, etcdServerArgs, peerUrlOf } from './members.ts'
import { checkEtcd, etcdSize, planEtcd, planMember } from './planEtcd.ts'

const paths = { dir: '/c', pki: '/c/pki' }
const self = ['node', '/skiff']
const first = { name: 'etcd-1', clientPort: 1001, peerPort: 2001 }
const second = { name: 'etcd-2', clientPort: 1002, peerPort: 2002 }
const added = { name: 'etcd-3', clientPort: 1003, peerPort: 2003, joined: 'etcd-1=https://127.0.0.1:2001,etcd-3=https://127.0.0.1:2003' }
const plan = { token: 't', members: [first, second, added] }

test('ETC-18 a member begins with the members of the first start, one that was added joins those of its time', () => {
  const of = (member: typeof first) =>
    etcdCommand(paths, plan, member, self).filter((word) => /^--(name|data-dir|initial-cluster|initial-cluster-state)=/.test(word))
  assert.deepEqual(of(second), [
    '--name=etcd-2',
    '--data-dir=/c/etcd/etcd-2/data',
    '--initial-cluster=etcd-1=https://127.0.0.1:2001,etcd-2=https://127.0.0.1:2002',
    '--initial-cluster-state=new',
  ])
  assert.deepEqual(of(added).slice(2), [`--initial-cluster=${added.joined}`, '--initial-cluster-state=existing'])
})

test('ETC-19 members listen on loopback only, and take clients and peers with a certificate of their own authority', () => {
  const words = etcdCommand(paths, plan, first, self)
  for (const word of words.filter((one) => one.includes('-urls='))) assert.match(word, /=https:\/\/127\.0\.0\.1:\d+$/)
  for (const want of [
    '--client-cert-auth=true',
    '--peer-client-cert-auth=true',
    '--trusted-ca-file=/c/pki/etcd/ca.crt',
    '--peer-trusted-ca-file=/c/pki/etcd/ca.crt',
  ]) {
    assert.ok(words.includes(want), want)
  }
  assert.equal(etcdServerArgs(paths, plan)[0], '--etcd-servers=https://127.0.0.1:1001,https://127.0.0.1:1002,https://127.0.0.1:1003')
})

test('ETC-18 each member of a plan has ports of its own, and a further one the next name', async () => {
  const { members } = await planEtcd(5)
  assert.deepEqual(
    members.map(({ name }) => name),
    ['etcd-1', 'etcd-2', 'etcd-3', 'etcd-4', 'etcd-5'],
  )
  assert.equal(new Set(members.flatMap(({ clientPort, peerPort }) => [clientPort, peerPort])).size, 10)
  assert.equal((await planMember({ members })).name, 'etcd-6')
})

for (const [name, given, want] of [
  ['no flag', {}, undefined],
  ['--etcd 5', { etcd: 5, controlPlanes: 3 }, 5],
  ['--control-planes 3', { controlPlanes: 3 }, 3],
  ['--control-planes 1', { controlPlanes: 1 }, undefined],
  ['--control-planes 3 over an etcd that is there', { controlPlanes: 3, apiServerArgs: ['--etcd-servers=https://10.0.0.1:2379'] }, undefined],
] as const) {
  test(`HA-01 ${name} asks for ${want ?? 'no'} members of etcd`, () => {
    assert.equal(etcdSize({ etcd: undefined, controlPlanes: undefined, apiServerArgs: undefined, ...given }), want)
  })
}

test('HA-01 --etcd embedded is one process of Skiff over TLS with certificates of clients, and needs no program', async () => {
  const plan = await planEtcd('embedded')
  assert.deepEqual([plan.embedded, plan.members.length], [true, 1])
  const [member] = plan.members
  assert.ok(member)
  const words = etcdCommand(paths, plan, member, self)
  assert.deepEqual(words.slice(0, 4), ['node', '/skiff', 'etcd', 'serve'])
  for (const word of ['--name=etcd-1', '--client-cert-auth=true', '--trusted-ca-file=/c/pki/etcd/ca.crt', '--data-dir=/c/etcd/etcd-1/data'])
    assert.ok(words.includes(word), words.join(' '))
  assert.deepEqual(
    words.filter((word) => word.includes('peer') || word.includes('initial')),
    [],
  )
  const exec = { run: () => Promise.reject(new Error('no program is asked for')) } as unknown as Exec
  await checkEtcd({ exec }, 'embedded', { etcd: 'embedded', controlPlanes: 3 })
})

test('HA-01 several control planes without the program etcd are refused, with both ways out', async () => {
  const exec = { run: async () => ({ stderr: '', stdout: '', timedOut: false, code: -1 }), spawn: () => assert.fail('nothing is spawned') }
  await assert.rejects(checkEtcd({ exec }, 3, { etcd: undefined, controlPlanes: 3 }), {
    exit: 'unmetPrerequisite',
    message: '--control-planes 3 keeps its objects in 3 members of etcd and needs etcd, which is not installed',
    hint: 'on Debian: apt install etcd-server; or take the embedded store: --etcd embedded; or name an etcd that is there: --etcd-servers',
  })
})

test('ETC-09 the name of a removed member is not given again', async () => {
  const members = [first, second]
  assert.equal((await planMember({ members, nextNumber: 4 })).name, 'etcd-4')
  // A plan of an earlier version has no next number.
  assert.equal((await planMember({ members })).name, 'etcd-3')
})

const peer = (plan: typeof first, isLearner = false): EtcdMember => ({ id: '1', name: plan.name, peerUrls: [peerUrlOf(plan)], clientUrls: [], isLearner })
const removals = [
  { name: 'another member began with the cluster', members: [first, second], isRefused: false },
  { name: 'the other one was added after the server’s start', members: [first, { ...added, addedMs: 200 }], isRefused: true },
  { name: 'the other one was added before the server’s start', members: [first, { ...added, addedMs: 50 }], isRefused: false },
  { name: 'the other one is a learner that the server knows', members: [first, { ...added, addedMs: 50 }], learner: added, isRefused: true },
  { name: 'an earlier version added the other one', members: [first, added], isRefused: false },
  { name: 'an earlier version started the server', members: [first, { ...added, addedMs: 200 }], server: {}, isRefused: false },
]
for (const { name, members, learner, server = { startedMs: 100 }, isRefused } of removals) {
  test(`ETC-09 a removal is ${isRefused ? 'refused' : 'allowed'} while the server runs, when ${name}`, () => {
    const known = members.map((member) => peer(member, member.name === learner?.name))
    const remove = () => refuseLastAsked('lab', { token: 't', members }, known, server, first.name)
    if (!isRefused) return remove()
    assert.throws(remove, (error: CommandError) => {
      assert.match(error.message, /asks only member "etcd-1"/)
      assert.deepEqual([error.exit, error.hint], ['conflict', 'stop and start the cluster first: skiff stop lab; skiff start lab'])
      return true
    })
  })
}

for (const [what, result, want] of [
  ['is not installed', { code: -1, stdout: '' }, /--etcd 3 needs etcd, which is not installed/],
  ['is too old', { code: 0, stdout: 'etcd Version: 3.3.25\n' }, /--etcd 3 needs etcd 3\.4 or later, found: etcd Version: 3\.3\.25/],
] as const) {
  test(`ETC-18 --etcd is refused with the package to install, where etcd ${what}`, async () => {
    const exec = { run: async () => ({ stderr: '', timedOut: false, ...result }), spawn: () => assert.fail('nothing is spawned') }
    await assert.rejects(checkEtcd({ exec }, 3, { etcd: 3, controlPlanes: undefined }), (error: CommandError) => {
      assert.ok(error instanceof CommandError)
      assert.match(error.message, want)
      assert.deepEqual([error.exit, error.hint], ['unmetPrerequisite', 'on Debian: apt install etcd-server'])
      return true
    })
  })
}
