import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec, Taint } from '#api/gen/types/core.v1'
import { seededRandom } from '#base/random'
import { type NodeShape, nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import { podInfo } from './framework/podInfo.ts'
import { nodesToFind, schedulePod } from './schedulePod.ts'

interface Shape extends NodeShape {
  taints?: Taint[]
  unschedulable?: boolean
  images?: { names: string[]; sizeBytes: number }[]
}

const node = ({ taints, unschedulable, images, ...shape }: Shape) => nodeOf({ ...shape, spec: { taints, unschedulable }, status: { images } })

const pod = podOf

const withPort = (hostPort: number, hostIP?: string): Partial<PodSpec> => ({
  containers: [{ name: 'c', image: 'app:1', ports: [{ containerPort: 80, hostPort, hostIP }] }],
})
const inZone = (zone: string): Partial<PodSpec> => ({ nodeSelector: { zone } })
const preferZone = (zone: string): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 10, preference: { matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] } }],
    },
  },
})
const pinned = (name: string): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }] },
    },
  },
})
const gpuTaint: Taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' }

const cases: { name: string; nodes: Shape[]; pod: Pod; placed?: Pod[]; on?: string; message?: string }[] = [
  { name: 'SCH-03 no nodes at all', nodes: [], pod: pod('p'), message: 'no nodes available to schedule pods' },
  {
    name: 'SCH-03 the pod goes where there is room',
    nodes: [
      { name: 'small', cpu: '1' },
      { name: 'big', cpu: '8' },
    ],
    pod: pod('p', {}, { cpu: '4' }),
    on: 'big',
  },
  {
    name: 'SCH-03 one reason per resource that is short, counted and sorted',
    nodes: [
      { name: 'a', cpu: '1' },
      { name: 'b', cpu: '1', memory: '1Gi' },
      { name: 'c', memory: '1Gi' },
    ],
    pod: pod('p', {}, { cpu: '2', memory: '4Gi' }),
    message: '0/3 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.',
  },
  {
    name: 'SCH-03 what runs there counts',
    nodes: [{ name: 'a', cpu: '4' }],
    pod: pod('p', {}, { cpu: '2' }),
    placed: [pod('q', { nodeName: 'a' }, { cpu: '3' })],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    name: 'SCH-03 a full node',
    nodes: [{ name: 'a', pods: '1' }],
    pod: pod('p'),
    placed: [pod('q', { nodeName: 'a' })],
    message: '0/1 nodes are available: 1 Too many pods.',
  },
  {
    name: 'SCH-03 an extended resource that no node has',
    nodes: [{ name: 'a' }],
    pod: pod('p', {}, { 'example.com/gpu': '1' }),
    message: '0/1 nodes are available: 1 Insufficient example.com/gpu.',
  },
  {
    name: 'SCH-04 a host port that is taken',
    nodes: [{ name: 'a' }, { name: 'b' }],
    pod: pod('p', withPort(80)),
    placed: [pod('q', { ...withPort(80), nodeName: 'a' })],
    on: 'b',
  },
  {
    name: 'SCH-04 the wildcard address collides with every address',
    nodes: [{ name: 'a' }],
    pod: pod('p', withPort(80, '127.0.0.1')),
    placed: [pod('q', { ...withPort(80), nodeName: 'a' })],
    message: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
  },
  {
    name: 'SCH-04 two addresses of one port do not collide',
    nodes: [{ name: 'a' }],
    pod: pod('p', withPort(80, '127.0.0.1')),
    placed: [pod('q', { ...withPort(80, '127.0.0.2'), nodeName: 'a' })],
    on: 'a',
  },
  {
    name: 'SCH-05 nodeSelector',
    nodes: [
      { name: 'a', labels: { zone: 'x' } },
      { name: 'b', labels: { zone: 'y' } },
    ],
    pod: pod('p', inZone('y')),
    on: 'b',
  },
  {
    name: 'SCH-05 no node matches',
    nodes: [{ name: 'a' }],
    pod: pod('p', inZone('y')),
    message: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
  },
  {
    name: 'SCH-05 a preference decides between equals',
    nodes: [
      { name: 'a', labels: { zone: 'x' } },
      { name: 'b', labels: { zone: 'y' } },
    ],
    pod: pod('p', preferZone('y')),
    on: 'b',
  },
  { name: 'SCH-05 affinity to one node by name', nodes: [{ name: 'a' }, { name: 'b' }, { name: 'c' }], pod: pod('p', pinned('b')), on: 'b' },
  {
    name: 'SCH-07 a taint that is not tolerated',
    nodes: [{ name: 'a', taints: [gpuTaint] }],
    pod: pod('p'),
    message: '0/1 nodes are available: 1 node(s) had untolerated taint(s).',
  },
  {
    name: 'SCH-07 a tolerated taint',
    nodes: [{ name: 'a', taints: [gpuTaint] }],
    pod: pod('p', { tolerations: [{ key: 'gpu', operator: 'Exists' }] }),
    on: 'a',
  },
  {
    name: 'SCH-07 a soft taint is avoided',
    nodes: [
      { name: 'a', taints: [{ ...gpuTaint, effect: 'PreferNoSchedule' }] },
      { name: 'b', cpu: '2' },
    ],
    pod: pod('p'),
    on: 'b',
  },
  { name: 'SCH-01 a cordoned node', nodes: [{ name: 'a', unschedulable: true }, { name: 'b' }], pod: pod('p'), on: 'b' },
  {
    name: 'SCH-01 all reasons of all nodes in one line',
    nodes: [
      { name: 'a', unschedulable: true },
      { name: 'b', taints: [gpuTaint] },
      { name: 'c', cpu: '1' },
    ],
    pod: pod('p', {}, { cpu: '2' }),
    message: '0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.',
  },
  {
    name: 'SCH-10 the emptier node wins',
    nodes: [{ name: 'a' }, { name: 'b' }],
    pod: pod('p', {}, { cpu: '1', memory: '1Gi' }),
    placed: [pod('q', { nodeName: 'a' }, { cpu: '2', memory: '4Gi' })],
    on: 'b',
  },
  {
    name: 'SCH-10 the node that has the image wins between equals',
    nodes: [{ name: 'a' }, { name: 'b', images: [{ names: ['app:1'], sizeBytes: 900 * 1024 * 1024 }] }],
    pod: pod('p'),
    on: 'b',
  },
]
for (const c of cases) {
  test(c.name, () => {
    const got = schedulerFixture({ nodes: c.nodes.map(node), placed: c.placed ?? [] }).decide(c.pod)
    assert.deepEqual(got, c.on === undefined ? { message: c.message } : { on: c.on })
  })
}

test('SCH-12 how many feasible nodes are enough', () => {
  const want: [number, number, number][] = [
    [50, 0, 50],
    [100, 0, 100],
    [1000, 0, 420],
    [5000, 0, 500],
    [6000, 0, 300],
    [1000, 40, 400],
    [200, 10, 100],
  ]
  for (const [total, percentage, enough] of want) assert.equal(nodesToFind(total, percentage), enough, `${total} nodes at ${percentage} %`)
})

test('equal nodes are chosen about equally often', () => {
  const fixture = schedulerFixture({ nodes: ['a', 'b', 'c'].map((name) => node({ name })) })
  const chosen = new Map<string, number>()
  for (let i = 0; i < 3000; i++) {
    const result = fixture.schedule(pod('p'))
    assert.ok('placed' in result)
    chosen.set(result.placed.node.name, (chosen.get(result.placed.node.name) ?? 0) + 1)
  }
  for (const count of chosen.values()) assert.ok(count > 850 && count < 1150, `${[...chosen]}`)
})

test('SCH-03 score rows that are used again change no decision, whether more or fewer nodes fit than before', () => {
  const nodes = Array.from({ length: 9 }, (_, i) => nodeOf({ name: `n${i}`, cpu: String(1 + (i % 5)), labels: { zone: i < 3 ? 'a' : 'b' } }))
  const incoming = [pod('p', {}, { cpu: '500m' }), pod('p', inZone('a'), { cpu: '500m' }), pod('p', preferZone('a')), pod('p', {}, { cpu: '100m' })]
  const { profile, cache } = schedulerFixture({ nodes, placed: [pod('there', { nodeName: 'n4' }, { cpu: '1' })] })
  const decide = (scoreRows?: number[][]) =>
    incoming.map((one) => {
      const result = schedulePod(profile, podInfo(one), cache, { random: seededRandom(1), startIndex: 0, percentageOfNodesToScore: 0, scoreRows })
      return 'placed' in result ? [result.placed.node.name, result.placed.feasibleNodes, result.placed.scores] : undefined
    })
  assert.deepEqual(decide([]), decide())
})
