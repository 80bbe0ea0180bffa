/** Ranges of ids: each pod its own, also after a restart; what the runtime cannot, it is not asked. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { RuntimeHandler } from '#grpc/criTypes'
import { kubeletConfig } from '../core/config.ts'
import { checkedRange, IdRanges, kubeletIds, nodeUsers, rangeOf } from '../core/idRanges.ts'
import { createUserNamespaces } from './userNamespaces.ts'

const unit = 65_536
const podOf = (uid: string, hostUsers?: boolean): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: uid, namespace: 'shop', uid },
  spec: { containers: [{ name: 'main' }], ...(hostUsers === undefined ? {} : { hostUsers }) },
  status: {},
})

const able: RuntimeHandler[] = [
  { name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: true } },
  { name: 'old', features: null },
]

async function onNode(
  run: (node: { directory: string; start: (handlers?: readonly RuntimeHandler[]) => ReturnType<typeof createUserNamespaces> }) => Promise<void>,
) {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-userns-'))
  const config = kubeletConfig({ nodeName: 'node-1', rootDirectory: '/kubelet' })
  const host = { path: (path: string) => join(directory, path) }
  const start = (handlers: readonly RuntimeHandler[] = able) => {
    const runtime = { status: async () => ({ conditions: [], handlers }) }
    return createUserNamespaces({ config, host, runtime } as unknown as Parameters<typeof createUserNamespaces>[0])
  }
  try {
    await run({ directory, start })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

test('KUB-19 each pod with a user namespace gets separate ids, and keeps them over a restart', () =>
  onNode(async ({ directory, start }) => {
    const users = await start()
    await users.prepare(podOf('a', false), '')
    await users.prepare(podOf('b', false), '')
    await users.prepare(podOf('c'), '')
    const mapping = (first: number) => [{ hostId: first, containerId: 0, length: unit }]
    assert.deepEqual(users.of(podOf('a', false)), { mode: 'POD', uids: mapping(unit), gids: mapping(unit) })
    assert.deepEqual(users.of(podOf('b', false)).uids, mapping(2 * unit))
    assert.deepEqual([users.of(podOf('c')), users.of(podOf('c', true))], [nodeUsers, nodeUsers])
    const written = JSON.parse(await readFile(join(directory, 'kubelet/pods/a/userns'), 'utf8')) as unknown
    assert.deepEqual(written, { uidMappings: mapping(unit), gidMappings: mapping(unit) })

    await users.releaseOthers((uid) => uid === 'b')
    const again = await start()
    assert.deepEqual(again.of(podOf('b', false)).uids, mapping(2 * unit))
    await again.prepare(podOf('d', false), '')
    assert.deepEqual(again.of(podOf('d', false)).uids, mapping(unit), 'what a had')

    await writeFile(join(directory, 'kubelet/pods/b/userns'), JSON.stringify({ uidMappings: mapping(5), gidMappings: mapping(5) }))
    await assert.rejects(start(), /record pod mappings for existing pod "b": wrong user namespace offset specified 5/)
  }))

const cannot = "can't set `spec.hostUsers: false`,"
const refusals: readonly [name: string, handlers: readonly RuntimeHandler[], handler: string, message: string][] = [
  ['a runtime that reports no handlers', [], '', `${cannot} runtime does not support user namespaces: the handler "" is not known`],
  ['a handler without them', able, 'old', `${cannot} RuntimeClass handler "old" does not support user namespaces`],
]
for (const [name, handlers, handler, message] of refusals)
  test(`KUB-19 own users are refused for ${name}`, () =>
    onNode(async ({ start }) => assert.rejects((await start(handlers)).prepare(podOf('a', false), handler), { message })))

test('KUB-19 ranges are limited, released, and belong to one pod', () => {
  const ranges = new IdRanges({ first: unit, length: 2 * unit }, unit)
  assert.deepEqual([ranges.allocate('a').first, ranges.allocate('b').first], [unit, 2 * unit])
  assert.throws(() => ranges.allocate('c'), /could not find an empty slot/)
  ranges.release('a')
  assert.throws(() => ranges.record('c', { first: 2 * unit, length: unit }), /range picked for pod "c" already taken/)
  assert.throws(() => ranges.record('c', { first: 9 * unit, length: unit }), /id 589824 is out of range/)
  assert.throws(() => ranges.record('c', { first: unit, length: 1 }), /wrong user namespace length 1/)
  ranges.record('c', { first: unit, length: unit })
  assert.deepEqual(ranges.get('c'), { first: unit, length: unit })
})

test('KUB-24 the ids of the user "kubelet" are what its administrator has set aside, and must suffice', () => {
  assert.deepEqual(kubeletIds('', 'other:1:2\n', unit), { first: unit, length: 2 ** 32 - unit })
  assert.deepEqual(kubeletIds('kubelet:131072:7208960\n', 'kubelet:131072:7208960\n', unit), { first: 131_072, length: 7_208_960 })
  assert.throws(() => kubeletIds('kubelet:131072:65536\n', 'kubelet:65536:65536\n', unit), /mismatched/)
  assert.throws(() => kubeletIds('kubelet:131072:65536\n', '', unit), /expected one mapping/)
  const faults: readonly [first: number, length: number, perPod: number, message: RegExp][] = [
    [unit, 200 * unit, 5, /length 5 is not a multiple of 65536/],
    [unit + 1, 200 * unit, unit, /ID 65537 is not a multiple of 65536/],
    [0, 200 * unit, unit, /ID 0 must be greater or equal to 65536/],
    [unit, unit + 1, unit, /IDs length 65537 is not a multiple of 65536/],
    [unit, 100 * unit, unit, /not enough to support 110 pods/],
  ]
  for (const [first, length, perPod, message] of faults) assert.throws(() => checkedRange({ first, length }, perPod, 110), message)
})

test('KUB-19 a file that no kubelet wrote is refused', () => {
  const [one, other] = [
    { hostId: unit, containerId: 0, length: unit },
    { hostId: 0, containerId: 0, length: unit },
  ]
  const text = (uidMappings: unknown, gidMappings: unknown) => JSON.stringify({ uidMappings, gidMappings })
  assert.throws(() => rangeOf(text([one, other], [one, other])), /no more than one mapping/)
  assert.throws(() => rangeOf(text([one], [other])), /should be identical/)
  assert.throws(() => rangeOf(text([{ ...one, containerId: 1 }], [{ ...one, containerId: 1 }])), /UID 0 must be mapped/)
})
