/** NodeResourcesFit and NodeResourcesBalancedAllocation, case by case. Formulas: plugins/noderesources (v1.36). */
import type { ResourceSpec, ScoringStrategy, UtilizationShapePoint } from '#scheduler/framework/pluginArgs'
import { type Case, node, placements, pod } from './table.ts'

const gpu = 'example.com/gpu'
const asking = (...asks: Record<string, string>[]) => pod({ asks })
const running = (on: string, ...asks: Record<string, string>[]) => pod({ on, asks })
const sidecar = (requests: Record<string, string>) => ({ name: 's', image: 'app:1', restartPolicy: 'Always', resources: { requests } })
const init = (requests: Record<string, string>) => ({ name: 'i', image: 'app:1', resources: { requests } })
const small = (has: Record<string, string> = {}) => node('a', { has: { cpu: '10m', memory: '20', pods: '32', [gpu]: '5', 'ephemeral-storage': '20', ...has } })

const even: ResourceSpec[] = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]

placements('SCH-03', 'NodeResourcesFit', [
  {
    name: 'a pod that asks for nothing fits a node that is full',
    pod: pod(),
    nodes: [small()],
    placed: [running('a', { cpu: '10m', memory: '20' })],
    fits: 'a',
  },
  {
    name: 'the remaining resources are just enough',
    pod: asking({ cpu: '5m', memory: '1' }),
    nodes: [small()],
    placed: [running('a', { cpu: '5m', memory: '19' })],
    fits: 'a',
  },
  {
    name: 'one resource is short',
    pod: asking({ cpu: '1m', memory: '2' }),
    nodes: [small()],
    placed: [running('a', { cpu: '5m', memory: '19' })],
    message: '0/1 nodes are available: 1 Insufficient memory.',
    code: 'Unschedulable',
  },
  {
    name: 'two are short',
    pod: asking({ cpu: '6m', memory: '2' }),
    nodes: [small()],
    placed: [running('a', { cpu: '5m', memory: '19' })],
    message: '0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.',
    code: 'Unschedulable',
  },
  {
    name: 'a request above the node capacity cannot be helped by preemption',
    pod: asking({ cpu: '11m' }),
    nodes: [small()],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
    code: 'UnschedulableAndUnresolvable',
  },
  {
    name: 'short by others in one resource and beyond the node in another',
    pod: asking({ cpu: '6m', memory: '21' }),
    nodes: [small()],
    placed: [running('a', { cpu: '5m' })],
    code: 'UnschedulableAndUnresolvable',
  },
  { name: 'as many pods as the node takes', pod: pod(), nodes: [small({ pods: '2' })], placed: [running('a', {})], fits: 'a' },
  { name: 'one pod too many', pod: pod(), nodes: [small({ pods: '1' })], placed: [running('a', {})], message: '0/1 nodes are available: 1 Too many pods.' },
  {
    name: 'too many pods, and short besides',
    pod: asking({ cpu: '10m' }),
    nodes: [small({ pods: '1' })],
    placed: [running('a', { cpu: '1m' })],
    message: '0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods.',
  },
  { name: 'containers add up', pod: asking({ cpu: '6m' }, { cpu: '5m' }), nodes: [small()], message: '0/1 nodes are available: 1 Insufficient cpu.' },
  {
    name: 'init containers run one after another',
    pod: pod({ asks: [{ cpu: '1m' }], spec: { initContainers: [init({ cpu: '9m' }), init({ cpu: '10m' })] } }),
    nodes: [small()],
    fits: 'a',
  },
  {
    name: 'the largest init container counts',
    pod: pod({ asks: [{ cpu: '1m' }], spec: { initContainers: [init({ cpu: '11m' })] } }),
    nodes: [small()],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    name: 'requests of sidecars add to those of containers',
    pod: pod({ asks: [{ cpu: '6m' }], spec: { initContainers: [sidecar({ cpu: '5m' })] } }),
    nodes: [small()],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    name: 'requests of an init container add to the sidecars before it',
    pod: pod({ asks: [{ cpu: '1m' }], spec: { initContainers: [sidecar({ cpu: '3m' }), init({ cpu: '8m' })] } }),
    nodes: [small()],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    name: 'requests of an init container do not add to the sidecars after it',
    pod: pod({ asks: [{ cpu: '1m' }], spec: { initContainers: [init({ cpu: '8m' }), sidecar({ cpu: '3m' })] } }),
    nodes: [small()],
    fits: 'a',
  },
  {
    name: 'overhead is on top',
    pod: pod({ asks: [{ cpu: '5m' }], spec: { overhead: { cpu: '6m' } } }),
    nodes: [small()],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    name: 'a request for the whole pod replaces the sum',
    pod: pod({ asks: [{ cpu: '6m' }, { cpu: '6m' }], spec: { resources: { requests: { cpu: '9m' } } } }),
    nodes: [small()],
    fits: 'a',
  },
  {
    name: 'a request for the whole pod may be the larger',
    pod: pod({ asks: [{ cpu: '1m' }], spec: { resources: { requests: { cpu: '11m' } } } }),
    nodes: [small()],
    message: '0/1 nodes are available: 1 Insufficient cpu.',
  },
  {
    name: 'ephemeral storage fits',
    pod: asking({ 'ephemeral-storage': '10' }),
    nodes: [small()],
    placed: [running('a', { 'ephemeral-storage': '10' })],
    fits: 'a',
  },
  {
    name: 'ephemeral storage is short',
    pod: asking({ 'ephemeral-storage': '11' }),
    nodes: [small()],
    placed: [running('a', { 'ephemeral-storage': '10' })],
    message: '0/1 nodes are available: 1 Insufficient ephemeral-storage.',
  },
  { name: 'extended resources fit', pod: asking({ [gpu]: '3' }), nodes: [small()], placed: [running('a', { [gpu]: '2' })], fits: 'a' },
  {
    name: 'extended resources are short',
    pod: asking({ [gpu]: '4' }),
    nodes: [small()],
    placed: [running('a', { [gpu]: '2' })],
    message: `0/1 nodes are available: 1 Insufficient ${gpu}.`,
    code: 'Unschedulable',
  },
  {
    name: 'an extended resource that the node does not have',
    pod: asking({ 'example.com/fpga': '1' }),
    nodes: [small()],
    code: 'UnschedulableAndUnresolvable',
  },
  { name: 'none of it is asked for', pod: asking({ 'example.com/fpga': '0' }), nodes: [small()], fits: 'a' },
  {
    name: 'huge pages',
    pod: asking({ 'hugepages-2Mi': '4Mi' }),
    nodes: [node('a', { has: { 'hugepages-2Mi': '2Mi' } }), node('b', { has: { 'hugepages-2Mi': '4Mi' } })],
    fits: 'b',
  },
  {
    name: 'an extended resource that is left to others',
    pod: asking({ 'example.com/fpga': '1', cpu: '1m' }),
    nodes: [small()],
    args: fitArgs({ ignoredResources: ['example.com/fpga'] }),
    fits: 'a',
  },
  { name: 'a group of them', pod: asking({ 'example.com/fpga': '1' }), nodes: [small()], args: fitArgs({ ignoredResourceGroups: ['example.com'] }), fits: 'a' },
  {
    name: 'only those are left to others',
    pod: asking({ 'example.com/fpga': '1', 'other.com/fpga': '1' }),
    nodes: [small()],
    args: fitArgs({ ignoredResourceGroups: ['example.com'] }),
    message: '0/1 nodes are available: 1 Insufficient other.com/fpga.',
  },
  { name: 'cpu cannot be left to others', pod: asking({ cpu: '11m' }), nodes: [small()], args: fitArgs({ ignoredResources: ['cpu'] }), fits: '' },
])

function fitArgs(changes: { ignoredResources?: string[]; ignoredResourceGroups?: string[]; scoringStrategy?: ScoringStrategy }): unknown {
  return { ignoredResources: [], ignoredResourceGroups: [], scoringStrategy: { type: 'LeastAllocated', resources: even }, ...changes }
}

const sized = (name: string, cpu: string, memory: string, more: Record<string, string> = {}) => node(name, { has: { cpu, memory, ...more } })
const two = [sized('a', '4', '10000'), sized('b', '4', '10000')]
const busy = [
  running('a', { cpu: '3', memory: '0' }),
  running('a', { cpu: '3', memory: '0' }),
  running('b', { cpu: '3', memory: '0' }),
  running('b', { cpu: '3', memory: '5000' }),
]
const big = [sized('a', '10', '20000'), sized('b', '10', '20000')]
const cpuAndMemory = asking({ cpu: '1', memory: '2000' }, { cpu: '2', memory: '3000' })
const nothing = pod({ asks: [] })

placements('SCH-10', 'NodeResourcesFit', [
  { name: 'empty nodes, nothing asked for', pod: nothing, nodes: two, scores: { a: 100, b: 100 } },
  // (4-3)/4 of cpu, 5000/10000 of memory; (6-3)/6 and the same
  { name: 'the larger node has more left', pod: cpuAndMemory, nodes: [sized('a', '4', '10000'), sized('b', '6', '10000')], scores: { a: 37, b: 50 } },
  { name: 'what runs there counts', pod: nothing, nodes: big, placed: busy, scores: { a: 70, b: 57 } },
  { name: 'with what the pod asks for', pod: cpuAndMemory, nodes: big, placed: busy.slice(1), scores: { a: 57, b: 30 }, fits: 'a b' },
  { name: 'nodes without cpu and memory', pod: nothing, nodes: [sized('a', '0', '0'), sized('b', '0', '0')], scores: { a: 0, b: 0 } },
  {
    name: 'containers that ask for nothing count as a little',
    pod: pod(),
    nodes: [sized('a', '1', '400Mi'), sized('b', '2', '800Mi')],
    scores: { a: 70, b: 85 },
  },
  {
    name: 'weights count',
    pod: asking({ cpu: '1', memory: '2000' }),
    nodes: two,
    args: strategy('LeastAllocated', [
      { name: 'cpu', weight: 3 },
      { name: 'memory', weight: 1 },
    ]),
    // cpu 75, memory 80
    scores: { a: 76, b: 76 },
  },
  {
    name: 'an extended resource counts where it is asked for',
    pod: asking({ [gpu]: '2', cpu: '1', memory: '2000' }),
    nodes: [sized('a', '4', '10000', { [gpu]: '4' }), sized('b', '4', '10000', { [gpu]: '8' })],
    args: strategy('LeastAllocated', [{ name: gpu, weight: 1 }]),
    scores: { a: 50, b: 75 },
  },
  {
    name: 'and not where it is not',
    pod: asking({ cpu: '1', memory: '2000' }),
    nodes: [sized('a', '4', '10000', { [gpu]: '4' }), sized('b', '4', '10000')],
    args: strategy('LeastAllocated', [{ name: gpu, weight: 1 }]),
    scores: { a: 0, b: 0 },
  },
])

function strategy(type: ScoringStrategy['type'], resources: ResourceSpec[], shape?: UtilizationShapePoint[]): unknown {
  return fitArgs({ scoringStrategy: { type, resources, ...(shape ? { requestedToCapacityRatio: { shape } } : {}) } })
}

const most = strategy('MostAllocated', even)
placements('SCH-11', 'NodeResourcesFit', [
  { name: 'packing: empty nodes are worth nothing', pod: nothing, nodes: two, args: most, scores: { a: 0, b: 0 } },
  {
    name: 'packing: the smaller node is filled more',
    pod: cpuAndMemory,
    nodes: [sized('a', '4', '10000'), sized('b', '6', '10000')],
    args: most,
    scores: { a: 62, b: 50 },
  },
  { name: 'packing: what runs there counts', pod: nothing, nodes: big, placed: busy, args: most, scores: { a: 30, b: 42 } },
  {
    name: 'packing: with what the pod asks for',
    pod: asking({ cpu: '3', memory: '5000' }),
    nodes: big,
    placed: [running('a', { cpu: '3', memory: '0' }), running('b', { cpu: '3', memory: '5000' })],
    args: most,
    scores: { a: 42, b: 55 },
  },
  // 200 MiB by default is more than the node has
  { name: 'packing: no more than full', pod: pod(), nodes: [sized('a', '200m', '100Mi'), sized('b', '100m', '400Mi')], args: most, scores: { a: 75, b: 75 } },
  {
    name: 'packing: the fuller node gets the pod',
    pod: asking({ cpu: '1' }),
    nodes: two,
    placed: [running('b', { cpu: '1' })],
    args: strategy('MostAllocated', [{ name: 'cpu', weight: 1 }]),
    scores: { a: 25, b: 50 },
  },
  {
    name: 'packing: by an extended resource alone',
    pod: asking({ [gpu]: '2' }),
    nodes: [sized('a', '4', '1Gi', { [gpu]: '8' }), sized('b', '4', '1Gi', { [gpu]: '4' })],
    placed: [running('a', { [gpu]: '4' })],
    args: strategy('MostAllocated', [{ name: gpu, weight: 1 }]),
    scores: { a: 75, b: 50 },
  },
  {
    name: 'packing: weights count',
    pod: asking({ cpu: '1', memory: '5000' }),
    nodes: two,
    args: strategy('MostAllocated', [
      { name: 'cpu', weight: 1 },
      { name: 'memory', weight: 2 },
    ]),
    scores: { a: 41, b: 41 },
  },
])

const bent: UtilizationShapePoint[] = [
  { utilization: 0, score: 0 },
  { utilization: 50, score: 10 },
  { utilization: 100, score: 5 },
]
const rising: UtilizationShapePoint[] = [
  { utilization: 0, score: 0 },
  { utilization: 100, score: 10 },
]
const falling: UtilizationShapePoint[] = [
  { utilization: 0, score: 10 },
  { utilization: 100, score: 0 },
]
const cpuOnly: ResourceSpec[] = [{ name: 'cpu', weight: 1 }]
const gpus: ResourceSpec[] = [
  { name: gpu, weight: 3 },
  { name: 'cpu', weight: 1 },
]
const byShape = (name: string, millis: number, shape: UtilizationShapePoint[], score: number): Case => ({
  name: `along a line: ${name}`,
  pod: asking({ cpu: `${millis}m` }),
  nodes: [sized('a', '1', '1Gi'), sized('b', '1', '1Gi')],
  args: strategy('RequestedToCapacityRatio', cpuOnly, shape),
  scores: { a: score, b: score },
})
placements('SCH-10', 'NodeResourcesFit', [
  byShape('half way up', 500, rising, 50),
  byShape('at the top', 1000, rising, 100),
  byShape('half way down', 250, falling, 75),
  byShape('full where full is worth nothing', 1000, falling, 0),
  byShape('up to the bend', 250, bent, 50),
  byShape('at the bend', 500, bent, 100),
  byShape('after the bend', 750, bent, 75),
  byShape('at the end', 1000, bent, 50),
  byShape(
    'level before the first point',
    100,
    [
      { utilization: 20, score: 4 },
      { utilization: 80, score: 8 },
    ],
    40,
  ),
  byShape(
    'level after the last point',
    900,
    [
      { utilization: 20, score: 4 },
      { utilization: 80, score: 8 },
    ],
    80,
  ),
  byShape('a single point', 300, [{ utilization: 50, score: 7 }], 70),
  byShape('between points whole numbers go towards zero', 333, rising, 33),
  {
    name: 'along a line: resources of different weight',
    pod: asking({ [gpu]: '2', cpu: '1' }),
    nodes: [sized('a', '4', '1Gi', { [gpu]: '4' }), sized('b', '2', '1Gi', { [gpu]: '8' })],
    args: strategy('RequestedToCapacityRatio', gpus, rising),
    // (50*3+25)/4 and (25*3+50)/4, rounded
    scores: { a: 44, b: 31 },
  },
  {
    name: 'along a line: what scores nothing does not count in the mean',
    pod: asking({ [gpu]: '2', cpu: '0' }, { [gpu]: '0', cpu: '0' }),
    nodes: [sized('a', '4', '1Gi', { [gpu]: '4' }), sized('b', '4', '1Gi', { [gpu]: '8' })],
    args: strategy('RequestedToCapacityRatio', gpus, rising),
    scores: { a: 50, b: 25 },
  },
])

const balanced = (resources: ResourceSpec[]) => ({ resources })
placements('SCH-10', 'NodeResourcesBalancedAllocation', [
  { name: 'a pod that asks for nothing', pod: pod(), nodes: two, scores: 'skip' },
  { name: 'a pod that asks for something else only', pod: asking({ [gpu]: '1' }), nodes: two, scores: 'skip' },
  // 75 % and 50 %: 100 becomes 87; 50 % and 50 % stay 100
  { name: 'an empty node stays balanced or not', pod: cpuAndMemory, nodes: [sized('a', '4', '10000'), sized('b', '6', '10000')], scores: { a: 68, b: 75 } },
  { name: 'no change of the balance', pod: asking({ cpu: '1', memory: '2500' }), nodes: two, scores: { a: 75, b: 75 } },
  // a: 50 % cpu, 0 % memory (75) becomes 50/50 (100); b: the other way round
  { name: 'a lopsided node is put right', pod: asking({ memory: '5000' }), nodes: two, placed: [running('a', { cpu: '2' })], scores: { a: 87, b: 62 } },
  { name: 'from quite balanced to quite lopsided is the worst', pod: asking({ cpu: '4' }), nodes: two, scores: { a: 50, b: 50 } },
  {
    name: 'from quite lopsided to quite balanced is the best',
    pod: asking({ memory: '10000' }),
    nodes: two,
    placed: [running('a', { cpu: '4' }), running('b', { cpu: '4' })],
    scores: { a: 100, b: 100 },
  },
  {
    name: 'more than there is counts as all',
    pod: asking({ cpu: '3' }),
    nodes: two,
    placed: [running('a', { cpu: '3' }), running('b', { cpu: '3', memory: '5000' })],
    scores: { a: 69, b: 69 },
  },
  { name: 'nodes without the resources', pod: asking({ cpu: '1' }), nodes: [sized('a', '0', '0'), sized('b', '0', '0')], scores: { a: 75, b: 75 } },
  { name: 'a node with one of the two', pod: asking({ cpu: '1' }), nodes: [sized('a', '4', '0'), sized('b', '4', '10000')], scores: { a: 75, b: 68 } },
  {
    name: 'three resources',
    pod: asking({ cpu: '3', memory: '5000', [gpu]: '3' }),
    nodes: [sized('a', '3.5', '40000', { [gpu]: '4' }), sized('b', '3.5', '40000', { [gpu]: '6' })],
    args: balanced([...even, { name: gpu, weight: 1 }]),
    // 86, 12.5 and 75 %: deviation 0.32; 86, 12.5 and 50 %: 0.30
    scores: { a: 58, b: 60 },
  },
  {
    name: 'a third resource that the pod does not ask for is left out',
    pod: cpuAndMemory,
    nodes: [sized('a', '4', '10000', { [gpu]: '4' }), sized('b', '6', '10000')],
    args: balanced([...even, { name: gpu, weight: 1 }]),
    scores: { a: 68, b: 75 },
  },
  { name: 'one resource is always in balance', pod: asking({ cpu: '1' }), nodes: two, args: balanced(cpuOnly), scores: { a: 75, b: 75 } },
])
