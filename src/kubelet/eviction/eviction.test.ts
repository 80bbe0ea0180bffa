import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { admitPod } from '../pods/admission.ts'
import { type ContainerConsumption, evictionMessage, rankForEviction, thresholdsMet, thresholdValue } from './evictionPlan.ts'

const Mi = 2 ** 20

function pod(name: string, requests: Record<string, string> = {}, more: Partial<Pod['spec']> = {}, phase = 'Running'): Pod {
  const containers = [{ name: 'c', resources: { requests } }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'n', uid: name }, spec: { containers, ...more }, status: { phase } }
}

test('KUB-13 thresholds are quantities or percentages', () => {
  assert.deepEqual([thresholdValue('100Mi', 1), thresholdValue('10%', 200)], [100 * Mi, 20])
  const observations = { 'memory.available': { available: 50 * Mi, capacity: 1000 * Mi }, 'nodefs.available': { available: 11, capacity: 100 } }
  assert.deepEqual(thresholdsMet(observations, { 'memory.available': '100Mi', 'nodefs.available': '10%', 'imagefs.available': '15%' }), [
    { signal: 'memory.available', threshold: 100 * Mi, available: 50 * Mi },
  ])
})

const usage: ContainerConsumption[] = ['within', 'above', 'far-above', 'low', 'critical'].map((podUid, index) => ({
  podUid,
  container: 'c',
  memoryBytes: [50, 150, 300, 110, 900][index]! * Mi,
  diskBytes: 0,
}))

test('KUB-13 first go pods above their requests, then by priority, then by excess; critical pods stay', () => {
  const pods = [
    pod('within', { memory: '100Mi' }),
    pod('above', { memory: '100Mi' }),
    pod('far-above', { memory: '100Mi' }),
    pod('low', { memory: '100Mi' }, { priority: -1 }),
    pod('critical', {}, { priority: 2_000_000_000 }),
  ]
  assert.deepEqual(
    rankForEviction(pods, usage, 'memory.available').map(({ metadata }) => metadata.name),
    ['low', 'far-above', 'above', 'within'],
  )
})

test('KUB-13 the message names what was short and who used it', () => {
  const met = { signal: 'memory.available', threshold: 100 * Mi, available: 50 * Mi } as const
  assert.equal(
    evictionMessage(pod('above', { memory: '100Mi' }), met, usage),
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 150Mi, request is 100Mi, has larger consumption of memory. ',
  )
})

const calm = { memory: false, disk: false, pid: false }
const room = { allocatable: { cpu: '1', memory: '1Gi', pods: '2' }, pressure: calm }
const admissions = [
  { name: 'room enough', pod: pod('a', { cpu: '500m' }), others: [pod('b', { cpu: '500m' })], want: undefined },
  {
    name: 'no cpu left',
    pod: pod('a', { cpu: '600m' }),
    others: [pod('b', { cpu: '500m' })],
    want: { reason: 'OutOfcpu', message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 500, capacity: 1000" },
  },
  { name: 'finished pods hold nothing', pod: pod('a', { cpu: '600m' }), others: [pod('b', { cpu: '500m' }, {}, 'Succeeded')], want: undefined },
  {
    name: 'too many pods',
    pod: pod('a'),
    others: [pod('b'), pod('c')],
    want: { reason: 'OutOfpods', message: "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2" },
  },
  {
    name: 'its port taken on another address of the node',
    pod: pod('a', {}, { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80, hostIP: '10.0.0.1' }] }] }),
    others: [pod('b', {}, { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }] }] })],
    want: { reason: 'NodePorts', message: "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports" },
  },
  { name: 'itself does not count', pod: pod('a', { cpu: '1' }), others: [pod('a', { cpu: '1' })], want: undefined },
]
for (const c of admissions) test(`a node with ${c.name}`, () => assert.deepEqual(admitPod(c.pod, c.others, room), c.want))

test('KUB-13 a node under pressure refuses: everyone for disk, the unreserved for memory, nobody critical', () => {
  const under = (pressure: Partial<typeof calm>, candidate: Pod) => admitPod(candidate, [], { ...room, pressure: { ...calm, ...pressure } })?.message
  assert.equal(under({ disk: true }, pod('a', { cpu: '1m' })), 'The node had condition: [DiskPressure]. ')
  assert.equal(under({ memory: true }, pod('a')), 'The node had condition: [MemoryPressure]. ')
  assert.equal(under({ memory: true }, pod('a', { cpu: '1m' })), undefined)
  assert.equal(under({ disk: true, memory: true }, pod('a', {}, { priority: 2_000_000_000 })), undefined)
})
