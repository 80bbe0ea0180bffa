/** HA-06: `skiff leave`: its flags, what it removes of a machine, and which member of etcd is the machine's. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { CommandError } from '#cli/exitCodes'
import type { EtcdAdministration, EtcdMember } from '#store/drivers/etcd/administration'
import { leavingPods } from './drainNode.ts'
import { isListening, removeFiles, removeMounted, runtimeSocket } from './hostCleanup.ts'
import { joinedParts } from './joinedParts.ts'
import { readLeaveOptions } from './leaveOptions.ts'
import { memberAt, removeOwnMember } from './ownEtcdMember.ts'

const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-leave-'))
after(() => fs.rm(folder, { recursive: true, force: true }))

const refusals: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [['--root-dir', '/'], /--root-dir \/: expected a folder of the cluster's own/],
  [['--config-dir', '/etc'], /--config-dir \/etc: expected/],
  [['--root-dir', '/var/lib/../../usr'], /--root-dir \/usr: expected/],
  [['--drain-timeout=-1s'], /--drain-timeout -1s: expected a duration/],
  [['--force'], /--force/],
  [['node-1'], /node-1/],
]
for (const [args, message] of refusals)
  test(`HA-06 skiff leave ${args.join(' ')} is refused`, () =>
    assert.throws(
      () => readLeaveOptions(args),
      (error) => error instanceof CommandError && error.exit === 'usage' && message.test(error.message),
    ))

test('HA-06 a machine that has joined nothing has nothing to leave', async () => {
  const options = readLeaveOptions(['--config-dir', path.join(folder, 'none'), '--root-dir', path.join(folder, 'none')])
  await assert.rejects(joinedParts(options), (error) => error instanceof CommandError && error.exit === 'notFound')
})

test('HA-06 a join that ended before the kubelet had a certificate is left without a name', async () => {
  const [configDir, rootDir] = [path.join(folder, 'half'), path.join(folder, 'half-root')]
  await fs.mkdir(configDir)
  await fs.writeFile(path.join(configDir, 'bootstrap-kubelet.conf'), '{}')
  const { node, controlPlane } = await joinedParts(readLeaveOptions(['--config-dir', configDir, '--root-dir', rootDir]))
  assert.deepEqual([node?.name, node?.bootstrap, controlPlane], [undefined, path.join(configDir, 'bootstrap-kubelet.conf'), undefined])
})

test('HA-06 mounts below the folder are undone before it is removed, the deepest first', async () => {
  const root = path.join(folder, 'root')
  await fs.mkdir(path.join(root, 'pods/p/volumes'), { recursive: true })
  let mounts = [root, `${root}/pods/p`, `${root}/pods/p/volumes/v`, `${root}-other/x`]
  const undone: string[] = []
  const mounter = {
    list: async () => mounts.map((mountPoint) => ({ mountPoint }) as never),
    unmount: async (target: string) => {
      undone.push(target)
      mounts = mounts.filter((point) => point !== target)
    },
  }
  await removeMounted(root, mounter)
  assert.deepEqual(undone, [`${root}/pods/p/volumes/v`, `${root}/pods/p`])
  await assert.rejects(fs.stat(root), /ENOENT/)
})

test('HA-06 nothing is removed while a mount below the folder is in use', async () => {
  const root = path.join(folder, 'busy')
  await fs.mkdir(path.join(root, 'pods/p'), { recursive: true })
  const mounter = { list: async () => [{ mountPoint: `${root}/pods/p` } as never], unmount: () => Promise.reject(new Error('target is busy')) }
  await assert.rejects(removeMounted(root, mounter), (error) => error instanceof CommandError && error.exit === 'conflict' && /pods\/p/.test(error.message))
  assert.ok(await fs.stat(path.join(root, 'pods/p')))
})

test('HA-06 files of the join go, and folders that hold something else stay', async () => {
  const [full, empty] = [path.join(folder, 'full'), path.join(folder, 'empty')]
  for (const one of [full, empty]) await fs.mkdir(one)
  for (const file of ['mine', 'other']) await fs.writeFile(path.join(full, file), '')
  await removeFiles([path.join(full, 'mine'), path.join(full, 'never')], [full, empty, path.join(folder, 'missing')])
  assert.deepEqual([await fs.readdir(full), await fs.stat(empty).catch(() => 'gone')], [['other'], 'gone'])
})

test('HA-06 the socket of the runtime is the one of the kubelet’s configuration', async () => {
  const file = path.join(folder, 'config.yaml')
  assert.equal(await runtimeSocket(file), '/run/containerd/containerd.sock')
  await fs.writeFile(file, 'kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///run/other.sock\n')
  assert.equal(await runtimeSocket(file), '/run/other.sock')
})

test('HA-06 a socket without a process behind it is not listened at', async () => {
  const file = path.join(folder, 'kubelet.sock')
  assert.equal(await isListening({ path: file }), false)
  const server = net.createServer().listen(file)
  await new Promise((resolve) => server.once('listening', resolve))
  assert.equal(await isListening({ path: file }), true)
  await new Promise((resolve) => server.close(resolve))
  await fs.writeFile(file, '')
  assert.equal(await isListening({ path: file }), false)
})

test('HA-06 mirror pods and pods of DaemonSets are not waited for', () => {
  const pod = (name: string, metadata: object) => ({ metadata: { name, ...metadata } }) as unknown as Pod
  const all = [
    pod('mirror', { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    pod('agent', { ownerReferences: [{ kind: 'DaemonSet', controller: true }] }),
    pod('web', { ownerReferences: [{ kind: 'ReplicaSet', controller: true }] }),
    pod('bare', {}),
  ]
  assert.deepEqual(
    leavingPods(all).map(({ metadata }) => metadata.name),
    ['web', 'bare'],
  )
})

const member = (id: string, host: string, isLearner = false): EtcdMember => ({
  id,
  name: `etcd-${id}`,
  peerUrls: [`https://${host}:2380`],
  clientUrls: [`https://${host}:2379`],
  isLearner,
})
const here = new Set(['10.0.0.2', 'fd00::2'])

test('HA-06 the member of etcd on this machine is the one with its address', () => {
  assert.equal(memberAt([member('1', '10.0.0.1'), member('2', '10.0.0.2')], here)?.id, '2')
  assert.equal(memberAt([member('3', '[fd00::2]')], here)?.id, '3')
  assert.equal(memberAt([member('1', '10.0.0.20'), { ...member('4', 'x'), clientUrls: ['nonsense'] }], here), undefined)
})

test('HA-06 the own member is removed, unless no other one has a vote', async () => {
  const clock = new VirtualClock()
  const removed: string[] = []
  const etcdOf = (...members: EtcdMember[]) =>
    ({ members: async () => members, remove: async (id: string) => void removed.push(id) }) as unknown as EtcdAdministration
  assert.equal(await removeOwnMember(clock, etcdOf(member('1', '10.0.0.1'), member('2', '10.0.0.2')), here), 'etcd-2')
  assert.deepEqual(removed, ['2'])
  const last = etcdOf(member('1', '10.0.0.1', true), member('2', '10.0.0.2'))
  await assert.rejects(removeOwnMember(clock, last, here), (error) => error instanceof CommandError && error.exit === 'conflict')
  await assert.rejects(removeOwnMember(clock, etcdOf(member('1', '10.0.0.1')), here), (error) => error instanceof CommandError && error.exit === 'notFound')
  assert.deepEqual(removed, ['2'])
})
