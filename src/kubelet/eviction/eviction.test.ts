import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { kubeletConfig } from '../core/config.ts'
import { limitsStorage, storageExcess } from './localStorage.ts'
import { memoryObservation } from './observe.ts'
import type { PodUsage } from './podUsage.ts'
import { evictionNotice, rankForEviction } from './ranking.ts'
import {
  type EvictionSignal,
  nextState,
  nothingMet,
  parseThresholds,
  thresholdAmount,
  thresholdsMet,
  thresholdText,
  withContainerFilesystem,
  worstOf,
} from './thresholds.ts'

const Mi = 2 ** 20

function pod(name: string, requests: Record<string, string> = {}, more: Partial<Pod['spec']> = {}, phase = 'Running'): Pod {
  const containers = [{ name: 'c', resources: { requests } }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'n', uid: name }, spec: { containers, ...more }, status: { phase } }
}

function thresholds(settings: Partial<Parameters<typeof kubeletConfig>[0]>) {
  return parseThresholds(kubeletConfig({ nodeName: 'n', ...settings }))
}

test("KUB-13 the thresholds are upstream's, and allocatableMemory.available follows memory.available", () => {
  assert.deepEqual(
    thresholds({}).map(({ signal, value }) => `${signal}<${value}`),
    [
      'memory.available<100Mi',
      'nodefs.available<10%',
      'nodefs.inodesFree<5%',
      'imagefs.available<15%',
      'imagefs.inodesFree<5%',
      'allocatableMemory.available<100Mi',
    ],
  )
  assert.deepEqual(thresholds({ evictionHard: { 'nodefs.available': '0%', 'imagefs.available': '100%' } }), [])
  assert.equal(thresholds({ evictionHard: { 'memory.available': '1Gi' }, mergeDefaultEvictionSettings: true }).length, 6)
  assert.deepEqual(
    [thresholdAmount('100Mi', 1), thresholdAmount('10%', 200), thresholdText('1024Mi', 1), thresholdText('10%', 10 * 2 ** 30)],
    [100 * Mi, 20, '1Gi', '1073741840'],
  )
})

const refused = [
  [{ evictionHard: { 'memory.free': '1Gi' } }, 'unsupported eviction signal memory.free'],
  [{ evictionHard: { 'memory.available': '0' } }, 'eviction threshold memory.available must be positive: 0'],
  [
    { evictionHard: { 'memory.available': 'much' } },
    'eviction threshold memory.available: "much" is neither a quantity such as 100Mi nor a percentage such as 10%',
  ],
  [{ evictionHard: { 'nodefs.available': '101%' } }, 'eviction percentage threshold nodefs.available must be <= 100%: 101%'],
  [{ evictionSoft: { 'memory.available': '1Gi' } }, 'grace period must be specified for the soft eviction threshold memory.available'],
  [
    { evictionSoft: { 'memory.available': '1Gi' }, evictionSoftGracePeriod: { 'memory.available': '-1s' } },
    'invalid eviction grace period specified: -1s, must be a positive value',
  ],
] as const
for (const [settings, message] of refused) test(`KUB-13 refused: ${message}`, () => assert.throws(() => thresholds(settings), { message }))

test('KUB-13 where containers write has the thresholds of the file system they share', () => {
  const of = (dedicated: boolean) =>
    withContainerFilesystem(thresholds({ evictionHard: { 'nodefs.available': '1%', 'imagefs.available': '2%', 'containerfs.available': '9%' } }), dedicated)
      .filter(({ signal }) => signal.startsWith('containerfs'))
      .map(({ value }) => value)
  assert.deepEqual([of(false), of(true)], [['1%'], ['2%']])
})

test('KUB-13 a soft threshold needs its grace period, a minimum reclaim keeps it met, memory has precedence', () => {
  const all = thresholds({
    evictionHard: { 'nodefs.available': '10%' },
    evictionSoft: { 'memory.available': '200Mi' },
    evictionSoftGracePeriod: { 'memory.available': '1m30s' },
    evictionMinimumReclaim: { 'memory.available': '50Mi' },
    enforceNodeAllocatable: [],
  })
  const memory = (available: number) => ({ 'memory.available': { available: available * Mi, capacity: 1000 * Mi } })
  const disk = { 'nodefs.available': { available: 5, capacity: 100 } }
  assert.deepEqual(thresholdsMet(all, memory(200), false), [])
  const first = nextState(nothingMet, all, memory(150), 0)
  assert.deepEqual([first.met.length, first.pressureSeenMs.get('memory')], [0, 0])
  const second = nextState(first, all, { ...memory(150), ...disk }, 90_000)
  assert.deepEqual(
    [second.met.map(({ signal }) => signal), worstOf(second.met)?.signal],
    [['nodefs.available', 'memory.available'].sort().reverse(), 'memory.available'],
  )
  const third = nextState(second, all, memory(240), 100_000)
  assert.deepEqual(
    third.met.map(({ signal }) => signal),
    ['memory.available'],
    'not enough was reclaimed',
  )
  assert.deepEqual([nextState(third, all, memory(250), 110_000).met, nextState(third, all, {}, 110_000).met], [[], []])
})

function using(memoryMi: number, diskMi = 0, more: Partial<PodUsage> = {}): PodUsage {
  const containers = [{ name: 'c', memoryBytes: memoryMi * Mi, rootfs: { bytes: diskMi * Mi, inodes: diskMi }, logs: { bytes: 0, inodes: 0 } }]
  return { containers, processes: memoryMi, volumes: new Map(), ...more }
}

const used: Record<string, PodUsage | undefined> = {
  within: using(50, 900),
  above: using(150, 1),
  'far-above': using(300, 2),
  low: using(110, 3),
  high: using(800),
}
const candidates = [
  pod('within', { memory: '100Mi' }),
  pod('above', { memory: '100Mi' }),
  pod('far-above', { memory: '100Mi' }),
  pod('high', { memory: '100Mi' }, { priority: 1000 }),
  pod('low', { memory: '100Mi' }, { priority: -1 }),
  pod('unknown', { memory: '100Mi' }),
]
const rankings: readonly (readonly [EvictionSignal, string])[] = [
  ['memory.available', 'unknown low far-above above high within'],
  ['allocatableMemory.available', 'unknown low far-above above high within'],
  ['nodefs.available', 'unknown low within far-above above high'],
  ['imagefs.inodesFree', 'unknown low within far-above above high'],
  ['pid.available', 'unknown low far-above above within high'],
]
for (const [signal, want] of rankings) {
  test(`KUB-13 for ${signal} pods go by excess, priority and use`, () => {
    const ranked = rankForEviction(candidates, ({ metadata }) => used[metadata.name ?? ''], signal, false)
    assert.equal(ranked.map(({ metadata }) => metadata.name).join(' '), want)
  })
}

test('KUB-13 what containers write is not on the disk of the node when images have their own', () => {
  const ranked = rankForEviction(candidates.slice(0, 2), ({ metadata }) => used[metadata.name ?? ''], 'nodefs.available', true)
  const logs = { volumes: new Map([['v', { bytes: Mi, inodes: 1 }]]) }
  const writer = rankForEviction([pod('a'), pod('b')], ({ metadata }) => (metadata.name === 'b' ? using(0, 0, logs) : using(0, 99)), 'nodefs.available', true)
  assert.deepEqual([ranked.length, writer[0]?.metadata.name], [2, 'b'])
})

const seen = { 'memory.available': { available: 50 * Mi, capacity: 1000 * Mi }, 'nodefs.available': { available: 1_500_000, capacity: 100 * Mi } }
const hard = thresholds({ evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '5Mi' }, enforceNodeAllocatable: [] })
test('KUB-13 the message names the resource and the containers that used it; the event repeats them as annotations', () => {
  assert.deepEqual(evictionNotice(pod('above', { memory: '100Mi' }), 'memory', using(150), hard, seen), {
    message:
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 150Mi, request is 100Mi, has larger consumption of memory. ',
    annotations: { offending_containers: 'c', offending_containers_usage: '150Mi', starved_resource: 'memory' },
  })
  assert.deepEqual(evictionNotice(pod('disk'), 'ephemeral-storage', using(0, 7), hard, seen), {
    message:
      'The node was low on resource: ephemeral-storage. Threshold quantity: 5Mi, available: 1500000. Container c was using 7Mi, request is 0, has larger consumption of ephemeral-storage. ',
    annotations: { offending_containers: 'c', offending_containers_usage: '7Mi', starved_resource: 'ephemeral-storage' },
  })
  const whole = evictionNotice(pod('p', {}, { resources: { requests: { memory: '1Mi' } } }), 'memory', using(2), hard, seen)
  assert.match(whole.message, /Pod p was using 2Mi, request is 1Mi, has larger consumption of memory\. Container c/)
  assert.deepEqual([whole.annotations.offending_pod, whole.annotations.offending_pod_usage], ['p', '2Mi'])
})

const limited = (limits: Record<string, string>, sizeLimit?: string) =>
  pod('p', {}, { containers: [{ name: 'c', resources: { limits } }], volumes: [{ name: 'v', emptyDir: sizeLimit ? { sizeLimit } : {} }] })
const volume = (mi: number) => ({ volumes: new Map([['v', { bytes: mi * Mi, inodes: 1 }]]) })
const storage = [
  { name: 'no limit', pod: limited({}), usage: using(0, 99, volume(99)), want: undefined },
  { name: 'an emptyDir within its limit', pod: limited({}, '10Mi'), usage: using(0, 99, volume(10)), want: undefined },
  {
    name: 'an emptyDir beyond it',
    pod: limited({}, '10Mi'),
    usage: using(0, 0, volume(11)),
    want: { signal: 'emptydirfs.limit', message: 'Usage of EmptyDir volume "v" exceeds the limit "10Mi". ' },
  },
  {
    name: 'volume and container together',
    pod: limited({ 'ephemeral-storage': '10Mi' }),
    usage: using(0, 6, volume(6)),
    want: { signal: 'ephemeralpodfs.limit', message: 'Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ' },
  },
  {
    name: 'CVE-2020-8557 hosts file and termination logs count together with the container',
    pod: limited({ 'ephemeral-storage': '10Mi' }),
    usage: using(0, 6, { managedFiles: { bytes: 6 * Mi, inodes: 2 } }),
    want: { signal: 'ephemeralpodfs.limit', message: 'Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ' },
  },
  {
    name: 'one container of two',
    pod: pod(
      'p',
      {},
      {
        containers: [
          { name: 'c', resources: { limits: { 'ephemeral-storage': '10Mi' } } },
          { name: 'd', resources: { limits: { 'ephemeral-storage': '1Gi' } } },
        ],
      },
    ),
    usage: using(0, 11),
    want: { signal: 'ephemeralcontainerfs.limit', message: 'Container c exceeded its local ephemeral storage limit "10Mi". ' },
  },
]
for (const c of storage) {
  test(`KUB-13 local storage: ${c.name}`, () => {
    assert.deepEqual(storageExcess(c.pod, c.usage, false), c.want)
    assert.equal(limitsStorage(c.pod), c.name !== 'no limit')
  })
}

test('KUB-13 memory is available when it is free or inactive file cache: active cache counts as used, as in the working set', () => {
  const meminfo = 'MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 700 kB\nActive(file): 400 kB\nInactive(file): 200 kB\n'
  assert.deepEqual(memoryObservation(meminfo), { available: 300 * 1024, capacity: 1000 * 1024 })
})
