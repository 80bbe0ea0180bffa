import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '#api/gen/types/core.v1'
import { seededRandom } from '#base/random'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import { podInfo } from './framework/podInfo.ts'
import type { ProfileConfig } from './framework/profile.ts'
import { type BatchMetrics, batchSigner, OpportunisticBatch } from './opportunisticBatch.ts'
import { schedulePod } from './schedulePod.ts'

/** Without spreading by default, pods can be signed. */
const signable: Partial<ProfileConfig> = { args: { PodTopologySpread: { defaultConstraints: [], defaultingType: 'List' } } }
const names = ['a', 'b', 'c', 'd']

function world(config: Partial<ProfileConfig> = signable, { isAlone = true, cpu = '1' }: { isAlone?: boolean; cpu?: string } = {}) {
  const nodes = names.map((name) => nodeOf({ name, cpu }))
  const fixture = schedulerFixture({ nodes, profile: config, remembers: false })
  const said: string[] = []
  let nowMs = 0
  const metrics: BatchMetrics = { attempt: (result) => said.push(result), flushed: (reason) => said.push(reason), hintTook() {}, storeTook() {} }
  const batch = new OpportunisticBatch(fixture.profile, isAlone, { nowMs: () => nowMs, random: seededRandom(1), metrics })
  let cycle = 0
  return {
    fixture,
    wait: (ms: number) => {
      nowMs += ms
    },
    skip: () => void cycle++,
    /** Where the pod goes, how many nodes were looked at for it, and what the batch counted. */
    place(pod: Pod) {
      const info = podInfo(pod)
      said.length = 0
      const options = { random: seededRandom(1), startIndex: 0, percentageOfNodesToScore: 0, batch: batch.begin(info, ++cycle) }
      const result = schedulePod(fixture.profile, info, fixture.cache, options)
      if (result instanceof Promise || !('placed' in result)) throw new Error('not placed')
      const { node, evaluatedNodes } = result.placed
      fixture.cache.assume(info, node.name)
      return { on: node.name, looked: evaluatedNodes, said: [...said] }
    },
  }
}

/** The nodes' order of preference is that of their names. */
const preferred = names.map((name, index) => ({
  weight: 100 - 20 * index,
  preference: { matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] },
}))
const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } }
const whole = (name: string, spec: Partial<PodSpec> = {}) => podOf(name, { affinity, ...spec }, { cpu: '1', memory: '1Gi' })

test('SCH-03 pods that fill a node each follow the ranking of the first one, best node first', () => {
  const { place } = world()
  assert.deepEqual(place(whole('p1')), { on: 'a', looked: 4, said: ['no_hint'] })
  assert.deepEqual(place(whole('p2')), { on: 'b', looked: 0, said: ['hint_used'] })
  assert.deepEqual(place(whole('p3')), { on: 'c', looked: 0, said: ['hint_used'] })
})

test('SCH-03 a ranking is not reused when the last node has room for another pod', () => {
  const { place } = world(signable, { cpu: '8' })
  place(whole('p1'))
  assert.deepEqual(place(whole('p2')).said, ['node_not_full', 'no_hint'])
})

test('SCH-03 a ranking is not reused for another kind of pod, in another namespace, after another pod, or after half a second', () => {
  const another = world()
  another.place(whole('p1'))
  assert.deepEqual(another.place(whole('p2', { tolerations: [{ key: 'x', operator: 'Exists' }] })).said, ['pod_incompatible', 'no_hint'])
  const elsewhere = world()
  elsewhere.place(whole('p1'))
  const pod = whole('p2')
  assert.deepEqual(elsewhere.place({ ...pod, metadata: { ...pod.metadata, namespace: 'other' } }).said, ['pod_incompatible', 'no_hint'])
  const skipped = world()
  skipped.place(whole('p1'))
  skipped.skip()
  assert.deepEqual(skipped.place(whole('p2')).said, ['pod_skipped', 'no_hint'])
  const late = world()
  late.place(whole('p1'))
  late.wait(501)
  assert.deepEqual(late.place(whole('p2')).said, ['expired', 'no_hint'])
  const gone = world()
  gone.place(whole('p1'))
  gone.fixture.cache.removeNode('a')
  assert.deepEqual(gone.place(whole('p2')).said, ['node_missing', 'no_hint'])
})

test('SCH-03 a hinted node that no longer fits is not used: all nodes are looked at again', () => {
  const { place, fixture } = world()
  place(whole('p1'))
  fixture.cache.setPod(podOf('other', { nodeName: 'b' }, { cpu: '1' }))
  assert.deepEqual(place(whole('p2')), { on: 'c', looked: 4, said: ['hint_not_used'] })
  assert.deepEqual(place(whole('p3')), { on: 'd', looked: 0, said: ['hint_used'] })
})

test('SCH-03 a ranking ends with its last node, and there is none when only one node fits', () => {
  const { place } = world()
  for (const name of ['p1', 'p2', 'p3']) place(whole(name))
  assert.deepEqual(place(whole('p4')), { on: 'd', looked: 0, said: ['hint_used'] })
  assert.throws(() => place(whole('p5')), /not placed/)
  const { place: alone, fixture } = world()
  for (const name of ['b', 'c', 'd']) fixture.cache.setPod(podOf(`on-${name}`, { nodeName: name }, { cpu: '1' }))
  assert.deepEqual(alone(whole('p1')), { on: 'a', looked: 4, said: ['no_hint', 'empty_list'] })
})

test('SCH-03 by default, and with extenders, no pod is signed, because of the spreading of applications', () => {
  assert.deepEqual(world({}).place(whole('p1')).said, ['no_hint', 'pod_not_batchable'])
  assert.deepEqual(world(signable, { isAlone: false }).place(whole('p1')).said, ['no_hint', 'pod_not_batchable'])
})

const sign = batchSigner(schedulerFixture({ profile: signable }).profile) ?? assert.fail('no signer')
const signOf = (spec: Partial<PodSpec>, labels: Record<string, string> = {}, name = 'p') => {
  const pod = podOf(name, spec)
  return sign(podInfo({ ...pod, metadata: { ...pod.metadata, labels } }))
}
const image = (name: string) => ({ containers: [{ name: 'c', image: name }] })

for (const { says, a, b, same } of [
  { says: 'names', a: signOf({}, {}, 'p'), b: signOf({}, {}, 'q'), same: true },
  { says: 'images', a: signOf(image('x:1')), b: signOf(image('x:2')), same: false },
  { says: 'labels', a: signOf({}, { app: 'a' }), b: signOf({}, { app: 'b' }), same: false },
  { says: 'the order of labels', a: signOf({}, { a: '1', b: '2' }), b: signOf({}, { b: '2', a: '1' }), same: true },
  {
    says: 'config maps',
    a: signOf({ volumes: [{ name: 'v', configMap: { name: 'a' } }] }),
    b: signOf({ volumes: [{ name: 'w', configMap: { name: 'b' } }] }),
    same: true,
  },
  {
    says: 'claims',
    a: signOf({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'a' } }] }),
    b: signOf({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'b' } }] }),
    same: false,
  },
])
  test(`SCH-03 pods that differ in ${says} have ${same ? 'the same' : 'another'} signature`, () => {
    assert.ok(a !== undefined)
    assert.equal(a === b, same)
  })

for (const [says, spec] of [
  ['affinity to pods', { affinity: { podAffinity: {} } }],
  ['constraints of spreading', { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }] }],
  ['claims of devices', { resourceClaims: [{ name: 'gpu' }] }],
] as const)
  test(`SCH-03 a pod with ${says} has no signature`, () => assert.equal(signOf(spec as unknown as Partial<PodSpec>), undefined))
