import assert from 'node:assert/strict'
import { chmod, lstat, mkdir, mkdtemp, readdir, readlink, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod, VolumeMount } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import type { EventRecorder } from '#client/eventRecorder'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import { makeDirectoriesWithin, OutsideError, openWithin } from '../core/safeOpen.ts'
import { containerMounts, resolveRecursiveReadOnly } from '../pods/mounts.ts'
import { mountsImagesItself } from '../runtime/containerd/imageMounts.ts'
import { nestedMountPoints } from './configurationVolume.ts'
import { memoryVolumeBytes, pageSizeOption } from './emptyDir.ts'
import { createExclusive } from './exclusive.ts'
import { rootIsRight, setVolumeOwnership, watchOwnership } from './ownership.ts'
import { knowsNoSwap } from './podMounts.ts'
import { tokenOwner } from './projected.ts'
import { createWaits } from './waits.ts'

const isRoot = process.getuid?.() === 0

async function inTemporary(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'volumes-')))
  try {
    await run(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const podOf = (spec: Partial<Pod['spec']>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { containers: [{ name: 'main' }], ...spec },
  status: {},
})

const sizes: readonly [allocatable: string, podLimit: number, sizeLimit: string | undefined, want: number][] = [
  ['1Gi', 0, undefined, 2 ** 30],
  ['1Gi', 2 ** 20, undefined, 2 ** 20],
  ['1Gi', 2 ** 20, '2Mi', 2 ** 20],
  ['1Gi', 2 ** 22, '2Mi', 2 ** 21],
  ['1Gi', 0, '2Gi', 2 ** 30],
  ['1Gi', 2 ** 31, '0', 2 ** 30],
]
for (const [allocatable, podLimit, sizeLimit, want] of sizes)
  test(`STO-01 memory of ${allocatable} on the node, ${podLimit} for the pod, ${sizeLimit} for the volume gives ${want}`, () =>
    assert.equal(memoryVolumeBytes(allocatable, podLimit, sizeLimit), want))

const runAs = (...users: (number | undefined)[]) =>
  users.map((runAsUser, i) => ({ name: `c${i}`, ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }) }))
const owners: readonly { name: string; spec: Partial<Pod['spec']>; want: { mode: number; uid?: number } }[] = [
  { name: 'no users and no group', spec: { containers: runAs(undefined) }, want: { mode: 0o644 } },
  { name: 'one user', spec: { containers: runAs(7), initContainers: runAs(7) }, want: { mode: 0o600, uid: 7 } },
  { name: 'one user and a group', spec: { containers: runAs(7), securityContext: { fsGroup: 9 } }, want: { mode: 0o600, uid: 7 } },
  { name: 'the user of the pod', spec: { containers: runAs(undefined), securityContext: { runAsUser: 7 } }, want: { mode: 0o600, uid: 7 } },
  { name: 'two users', spec: { containers: runAs(7, 8) }, want: { mode: 0o644 } },
  { name: 'two users and a group', spec: { containers: runAs(7, 8), securityContext: { fsGroup: 9 } }, want: { mode: 0o600 } },
  { name: 'a debugging container of another user', spec: { containers: runAs(7), ephemeralContainers: runAs(8) }, want: { mode: 0o644 } },
]
for (const { name, spec, want } of owners)
  test(`STO-03 a token of a pod is for its user and its group alone, the pod has ${name}`, () => assert.deepEqual(tokenOwner(podOf(spec), 0o644), want))

const asking = (...names: string[]) => podOf({ containers: names.map((name, i) => ({ name: `c${i}`, resources: { requests: { [name]: '4Mi' } } })) })

test('STO-01 huge pages have the size that the medium names, or the only one that the pod asks for', () => {
  assert.equal(pageSizeOption('HugePages', asking('hugepages-2Mi')), 'pagesize=2Mi')
  assert.equal(pageSizeOption('HugePages-1Gi', asking('hugepages-2Mi', 'hugepages-1Gi')), 'pagesize=1Gi')
  const several = { message: "medium: HugePages can't be used if container requests multiple huge page sizes" }
  assert.throws(() => pageSizeOption('HugePages', asking('hugepages-2Mi', 'hugepages-1Gi')), several)
  const none = { message: 'medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages' }
  assert.throws(() => pageSizeOption('HugePages-1Gi', asking('hugepages-2Mi')), none)
})

test('KUB-11 OnRootMismatch trusts a root with the group, the permissions and the set-group-id bit', () => {
  const root = (gid: number, mode: number, directory = true) => ({ gid, mode, isDirectory: () => directory })
  assert.equal(rootIsRight(root(7, 0o2770), 7, false), true)
  assert.equal(rootIsRight(root(7, 0o2775), 7, false), true)
  assert.equal(rootIsRight(root(8, 0o2770), 7, false), false)
  assert.equal(rootIsRight(root(7, 0o0770), 7, false), false)
  assert.equal(rootIsRight(root(7, 0o2750), 7, false), false)
  assert.equal(rootIsRight(root(7, 0o2750), 7, true), true)
  assert.equal(rootIsRight(root(7, 0o2770, false), 7, false), false)
})

test('KUB-11 a volume is handed to the fsGroup, links are left alone, and OnRootMismatch spares a tree that is right', { skip: !isRoot }, () =>
  inTemporary(async (directory) => {
    const outside = join(directory, 'outside')
    const root = join(directory, 'volume')
    await mkdir(join(root, 'a/b'), { recursive: true })
    await writeFile(outside, '', { mode: 0o600 })
    for (let i = 0; i < 150; i++) await writeFile(join(root, `a/b/${i}`), '', { mode: 0o600 })
    await symlink(outside, join(root, 'link'))
    await setVolumeOwnership(root, { fsGroup: 4321 })
    const [file, folder, other] = [await stat(join(root, 'a/b/149')), await stat(join(root, 'a/b')), await stat(outside)]
    assert.deepEqual([file.gid, file.mode & 0o7777, folder.gid, folder.mode & 0o7777], [4321, 0o660, 4321, 0o2775])
    assert.deepEqual([other.gid, other.mode & 0o7777], [0, 0o600])
    await chmod(join(root, 'a/b/0'), 0o600)
    await setVolumeOwnership(root, { fsGroup: 4321, policy: 'OnRootMismatch' })
    assert.equal((await stat(join(root, 'a/b/0'))).mode & 0o777, 0o600)
    await setVolumeOwnership(root, { fsGroup: 4321, policy: 'Always' })
    assert.equal((await stat(join(root, 'a/b/0'))).mode & 0o777, 0o660)
  }),
)

test('KUB-11 paths are opened and created inside the volume only, even through links', () =>
  inTemporary(async (directory) => {
    const root = join(directory, 'volume')
    await mkdir(join(root, 'real'), { recursive: true })
    await symlink('..', join(root, 'up'))
    await symlink('real', join(root, 'inside'))
    await makeDirectoriesWithin(root, 'real/new/deep', 0o2770)
    assert.equal((await stat(join(root, 'real/new'))).mode & 0o7777, 0o2770)
    await makeDirectoriesWithin(root, 'inside/other', 0o755)
    assert.ok((await lstat(join(root, 'real/other'))).isDirectory())
    await assert.rejects(makeDirectoriesWithin(root, 'up/escaped', 0o755), OutsideError)
    await assert.rejects(stat(join(directory, 'escaped')), /ENOENT/)
    await assert.rejects(openWithin(root, join(root, 'up')), OutsideError)
    await assert.rejects(openWithin(root, directory), OutsideError)
    const opened = await openWithin(root, join(root, 'real/new'))
    assert.ok((await opened.stat()).isDirectory())
    await opened.close()
    const open = await Promise.all((await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
    assert.deepEqual(
      open.filter((path) => path.startsWith(directory)),
      [],
    )
  }))

test('KUB-11 mount points inside a read-only volume are known from the containers', () => {
  const volumeMounts = [
    { name: 'config', mountPath: '/etc/app/' },
    { name: 'data', mountPath: '/etc/app/data/deep' },
    { name: 'other', mountPath: '/etc/application' },
  ]
  assert.deepEqual(nestedMountPoints(podOf({ containers: [{ name: 'main', volumeMounts }] }), 'config'), ['data/deep'])
})

const mount = (fields: Partial<VolumeMount>): VolumeMount => ({ name: 'v', mountPath: '/v', ...fields })
const refusals: readonly [name: string, fields: Partial<VolumeMount>, message: string][] = [
  ['a writable mount', { recursiveReadOnly: 'Enabled' }, 'requested recursive read-only mode, but it is not read-only'],
  [
    'a propagating mount',
    { recursiveReadOnly: 'IfPossible', readOnly: true, mountPropagation: 'HostToContainer' },
    'requested recursive read-only mode, but it is not compatible with propagation "HostToContainer"',
  ],
  ['a runtime that cannot', { recursiveReadOnly: 'Enabled', readOnly: true }, 'requested recursive read-only mode, but it is not supported by the runtime'],
]
for (const [name, fields, message] of refusals)
  test(`KUB-11 recursive read-only is refused for ${name}`, () =>
    assert.throws(() => resolveRecursiveReadOnly(mount(fields), false), { message: `failed to resolve recursive read-only mode: volume "v" ${message}` }))

test('KUB-11 recursive read-only where it is possible', () => {
  assert.equal(resolveRecursiveReadOnly(mount({}), true), false)
  assert.equal(resolveRecursiveReadOnly(mount({ recursiveReadOnly: 'IfPossible', readOnly: true }), false), false)
  assert.equal(resolveRecursiveReadOnly(mount({ recursiveReadOnly: 'IfPossible', readOnly: true }), true), true)
  assert.equal(resolveRecursiveReadOnly(mount({ recursiveReadOnly: 'Enabled', readOnly: true }), true), true)
})

for (const able of [true, false]) {
  test(`KUB-11 a runtime whose handler ${able ? 'can' : 'cannot'} is ${able ? '' : 'not '}asked for mounts that are read-only all the way down`, async () => {
    const volumeMounts = [mount({ recursiveReadOnly: 'IfPossible', readOnly: true }), mount({ mountPath: '/flat', readOnly: true })]
    const pod = podOf({ containers: [{ name: 'main', volumeMounts, terminationMessagePath: '' }], runtimeClassName: 'deep' })
    const handlers = [
      { name: '', features: { recursiveReadOnlyMounts: !able, userNamespaces: false } },
      { name: 'deep-handler', features: { recursiveReadOnlyMounts: able, userNamespaces: false } },
    ]
    const client = { of: () => ({ get: async () => ({ handler: 'deep-handler' }) }) }
    const context = { client, runtime: { status: async () => ({ conditions: [], handlers }) } } as unknown as KubeletContext
    const volumes = new Map([['v', { name: 'v', plugin: 'kubernetes.io/empty-dir', path: '/data', readOnly: false, block: false }]])
    const inputs = { pod, container: pod.spec.containers[0]!, podIPs: [], environment: new Map(), volumes }
    const made = await containerMounts(context, {} as KubeletHost, inputs)
    assert.deepEqual(
      made.map(({ containerPath, readonly, recursiveReadOnly }) => [containerPath, readonly, recursiveReadOnly]),
      [
        ['/v', true, able ? true : undefined],
        ['/flat', true, undefined],
      ],
    )
  })
}

function waiting() {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const events: string[] = []
  const recorder: EventRecorder = { event: (_, type, reason, message) => void events.push(`${type} ${reason} ${message}`), flush: async () => {} }
  return { clock, events, waits: createWaits({ clock, recorder }) }
}

test('KUB-11 a failed volume is retried after 500 ms, then after twice as long, with one event for each try', async () => {
  const { clock, waits } = waiting()
  const seen: number[] = []
  for (let i = 0; i < 10; i++) {
    assert.equal(waits.failed('u', 'v'), true)
    assert.equal(waits.failed('u', 'v'), false)
    seen.push(waits.remainingMs('u', 'v'))
    await clock.advance(waits.remainingMs('u', 'v'))
  }
  assert.deepEqual(seen, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 122_000, 122_000])
  waits.failed('u', 'v')
  waits.succeeded('u', 'v')
  assert.equal(waits.remainingMs('u', 'v'), 0)
})

test('KUB-11 a claim that cannot be used yet is reported at once, and missing volumes after two minutes', async () => {
  const { clock, events, waits } = waiting()
  const pod = podOf({})
  waits.unprocessed(pod, 'data', 'error processing PVC n/c: PVC is not bound')
  waits.notReady(pod, ['data', 'config'])
  const text = 'unmounted volumes=[config data], unattached volumes=[], failed to process volumes=[data]: error processing PVC n/c: PVC is not bound'
  assert.deepEqual(events, [`Warning FailedMount Unable to attach or mount volumes: ${text}`])
  waits.notReady(pod, ['config', 'data'])
  assert.equal(events.length, 1)
  const seen: number[] = []
  for (let i = 0; i < 6; i++) {
    await clock.advance(waits.remainingMs('u', 'data'))
    waits.unprocessed(pod, 'data', 'error processing PVC n/c: PVC is not bound')
    seen.push(waits.remainingMs('u', 'data'))
  }
  assert.deepEqual(seen, [1000, 2000, 4000, 8000, 10_000, 10_000])
  waits.succeeded('u', 'data')
  waits.notReady(pod, ['config'])
  await clock.advance(123_000)
  const told = events.length
  const error = waits.notReady(pod, ['config'])
  assert.equal(error.message, 'unmounted volumes=[config], unattached volumes=[], failed to process volumes=[]: context deadline exceeded')
  assert.equal(events[told], `Warning FailedMount Unable to attach or mount volumes: ${error.message}`)
})

test('work under one key waits for its turn, also after a failure', async () => {
  const exclusive = createExclusive()
  const order: string[] = []
  let release = () => {}
  const first = exclusive('k', () => new Promise<void>((resolve) => (release = resolve)).then(() => Promise.reject(new Error('first failed'))))
  const second = exclusive('k', async () => void order.push('second'))
  await exclusive('other', async () => void order.push('other'))
  release()
  await assert.rejects(first, /first failed/)
  await second
  assert.deepEqual(order, ['other', 'second'])
})

test('STO-19 containerd mounts images itself from 2.1 on', () => {
  const versions = ['1.6.20~ds1', '1.7.24', 'v2.0.5', '2.1.0', '2.1.9', 'v3.0.0']
  assert.deepEqual(versions.map(mountsImagesItself), [false, false, false, true, true, true])
})

test('STO-03 a long walk through a volume is reported after half a minute, and its progress every minute', async () => {
  const clock = new VirtualClock()
  const events: string[] = []
  const recorder = { event: (_pod: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`) }
  const watch = watchOwnership({ clock, recorder: recorder as unknown as EventRecorder }, podOf({}), '/var/lib/kubelet/pods/u/volumes/v')
  watch.seen()
  watch.seen()
  await clock.advance(30_000)
  await clock.advance(60_000)
  watch.stop()
  await clock.advance(600_000)
  const where = 'Warning VolumePermissionChangeInProgress Setting volume ownership for u/volumes/v'
  const page = 'https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods'
  assert.deepEqual(events, [`${where} is taking longer than expected, consider using OnRootMismatch - ${page}`, `${where}, processed 2 files.`])
})

test('STO-01 kernels since 6.4 keep volumes in memory out of swap', () => {
  assert.deepEqual(['6.4.0-1-amd64', '6.18.1', '7.0', '6.3.9', '5.15.0'].map(knowsNoSwap), [true, true, true, false, false])
})
