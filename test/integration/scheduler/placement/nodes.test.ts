/** The plugins that look at the node alone, case by case. Upstream: plugins/{nodename,nodeunschedulable,tainttoleration,nodeaffinity,nodeports,imagelocality} (v1.36). */
import type { Container, ContainerPort, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration } from '#api/gen/types/core.v1'
import { type Case, type NodeSketch, node, placements, pod } from './table.ts'

const all = (n: number, what: string) => `0/${n} nodes are available: ${n} ${what}.`
const two = [node('a'), node('b')]

placements('SCH-05', 'NodeName', [
  { name: 'no node named', pod: pod(), nodes: two, fits: 'a b' },
  { name: 'the node named', pod: pod({ on: 'b' }), nodes: two, fits: 'b' },
  {
    name: 'a node that is not there',
    pod: pod({ on: 'c' }),
    nodes: two,
    message: all(2, "node(s) didn't match the requested node name"),
    code: 'UnschedulableAndUnresolvable',
  },
])

const cordon = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }
const tolerating = (...tolerations: Toleration[]) => pod({ spec: { tolerations } })
placements('SCH-01', 'NodeUnschedulable', [
  { name: 'a cordoned node', pod: pod(), nodes: [node('a', { unschedulable: true }), node('b')], fits: 'b' },
  {
    name: 'all cordoned',
    pod: pod(),
    nodes: [node('a', { unschedulable: true })],
    message: all(1, 'node(s) were unschedulable'),
    code: 'UnschedulableAndUnresolvable',
  },
  { name: 'a pod that tolerates it', pod: tolerating({ ...cordon, effect: 'NoSchedule' }), nodes: [node('a', { unschedulable: true })], fits: 'a' },
  { name: 'whatever the effect', pod: tolerating(cordon), nodes: [node('a', { unschedulable: true })], fits: 'a' },
  { name: 'another effect', pod: tolerating({ ...cordon, effect: 'NoExecute' }), nodes: [node('a', { unschedulable: true })], fits: '' },
  { name: 'a pod that tolerates everything', pod: tolerating({ operator: 'Exists' }), nodes: [node('a', { unschedulable: true })], fits: 'a' },
])

const taint = (effect: string, value = 'user1', key = 'dedicated'): Taint => ({ key, value, effect })
const equal = (effect: string, value = 'user1', key = 'dedicated'): Toleration => ({ key, operator: 'Equal', value, effect })
const exists = (effect?: string, key = 'dedicated'): Toleration => ({ key, operator: 'Exists', ...(effect ? { effect } : {}) })
const tainted = (name: string, ...taints: Taint[]) => node(name, { taints })
const tainting = (name: string, tolerations: Toleration[], taints: Taint[], fits: boolean): Case => ({
  name,
  pod: tolerating(...tolerations),
  nodes: [tainted('a', ...taints)],
  fits: fits ? 'a' : '',
})
const hard = 'NoSchedule'
const soft = 'PreferNoSchedule'
placements('SCH-07', 'TaintToleration', [
  {
    name: 'the message',
    pod: pod(),
    nodes: [tainted('a', taint(hard)), tainted('b', taint('NoExecute'))],
    message: all(2, 'node(s) had untolerated taint(s)'),
    code: 'UnschedulableAndUnresolvable',
  },
  tainting('no taints', [], [], true),
  tainting('tolerated by value', [equal(hard)], [taint(hard)], true),
  tainting('another value', [equal(hard, 'user2')], [taint(hard)], false),
  tainting('tolerated by key', [exists(hard)], [taint(hard)], true),
  tainting('another key', [exists(hard, 'gpu')], [taint(hard)], false),
  tainting('without an operator the value counts', [{ key: 'dedicated', value: 'user1', effect: hard }], [taint(hard)], true),
  tainting('any effect', [exists()], [taint('NoExecute')], true),
  tainting('another effect', [exists('NoExecute')], [taint(hard)], false),
  tainting('one of two taints', [exists(hard)], [taint(hard), taint(hard, '', 'gpu')], false),
  tainting('both of two taints', [exists(hard), exists(hard, 'gpu')], [taint(hard), taint(hard, '', 'gpu')], true),
  tainting('a soft taint keeps nobody out', [], [taint(soft)], true),
  tainting('everything is tolerated', [{ operator: 'Exists' }], [taint(hard), taint('NoExecute', 'x', 'y')], true),
  tainting('evictions later do not matter', [{ ...exists('NoExecute'), tolerationSeconds: 0 }], [taint('NoExecute')], true),
  tainting('a taint without a value', [equal(hard, '')], [{ key: 'dedicated', effect: hard }], true),
  {
    name: 'soft: the tolerated taint costs nothing',
    pod: tolerating(equal(soft)),
    nodes: [tainted('a', taint(soft)), tainted('b', taint(soft, 'user2'))],
    scores: { a: 100, b: 0 },
  },
  {
    name: 'soft: all tolerated, however many',
    pod: tolerating(equal(soft, 'arm64', 'cpu'), equal(soft, 'ssd', 'disk')),
    nodes: [node('a'), tainted('b', taint(soft, 'arm64', 'cpu')), tainted('c', taint(soft, 'arm64', 'cpu'), taint(soft, 'ssd', 'disk'))],
    scores: { a: 100, b: 100, c: 100 },
  },
  {
    name: 'soft: the fewer not tolerated the better',
    pod: tolerating({ key: 'foo', operator: 'Equal', value: 'bar', effect: soft }),
    nodes: [node('a'), tainted('b', taint(soft, 'arm64', 'cpu')), tainted('c', taint(soft, 'arm64', 'cpu'), taint(soft, 'ssd', 'disk'))],
    scores: { a: 100, b: 50, c: 0 },
  },
  {
    name: 'soft: hard tolerations do not help',
    pod: tolerating(equal(hard, 'arm64', 'cpu'), equal(hard, 'ssd', 'disk')),
    nodes: [node('a'), tainted('b', taint(hard, 'arm64', 'cpu')), tainted('c', taint(soft, 'arm64', 'cpu'), taint(soft, 'ssd', 'disk'))],
    scores: { a: 100, b: 100, c: 0 },
  },
  { name: 'soft: a toleration of any effect', pod: tolerating(exists()), nodes: [node('a'), tainted('b', taint(soft))], scores: { a: 100, b: 100 } },
  { name: 'soft: no node is tainted', pod: pod(), nodes: two, scores: { a: 100, b: 100 } },
  {
    name: 'soft: thirds',
    pod: pod(),
    nodes: [tainted('a', taint(soft)), tainted('b', taint(soft), taint(soft, '', 'x'), taint(soft, '', 'y'))],
    scores: { a: 67, b: 0 },
  },
])

type Affinity = NonNullable<NonNullable<PodSpec['affinity']>['nodeAffinity']>
const requires = (...nodeSelectorTerms: NodeSelectorTerm[]): Affinity => ({ requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } })
const prefers = (...terms: [number, NodeSelectorTerm][]): Affinity => ({
  preferredDuringSchedulingIgnoredDuringExecution: terms.map(([weight, preference]) => ({ weight, preference })),
})
const wanting = (nodeAffinity: Affinity, spec: Partial<PodSpec> = {}) => pod({ spec: { affinity: { nodeAffinity }, ...spec } })
const has = (key: string, operator: string, ...values: string[]): NodeSelectorRequirement => ({ key, operator, ...(values.length > 0 ? { values } : {}) })
const labels = (...matchExpressions: NodeSelectorRequirement[]): NodeSelectorTerm => ({ matchExpressions })
const named = (operator: string, ...values: string[]): NodeSelectorTerm => ({ matchFields: [{ key: 'metadata.name', operator, values }] })
const labelled = (name: string, of: Record<string, string>) => node(name, { labels: of })
const world = [labelled('a', { foo: 'bar', gen: '10' }), labelled('b', { foo: 'baz', gen: '20' }), node('c')]
const required = (name: string, term: NodeSelectorTerm, fits: string): Case => ({ name, pod: wanting(requires(term)), nodes: world, fits })
const mismatch = "node(s) didn't match Pod's node affinity/selector"

placements('SCH-05', 'NodeAffinity', [
  { name: 'nothing wanted', pod: pod(), nodes: world, fits: 'a b c' },
  { name: 'a selector', pod: pod({ spec: { nodeSelector: { foo: 'bar' } } }), nodes: world, fits: 'a' },
  {
    name: 'all of a selector',
    pod: pod({ spec: { nodeSelector: { foo: 'bar', gen: '20' } } }),
    nodes: world,
    message: all(3, mismatch),
    code: 'UnschedulableAndUnresolvable',
  },
  required('In', labels(has('foo', 'In', 'bar', 'x')), 'a'),
  required('NotIn takes nodes without the label', labels(has('foo', 'NotIn', 'bar')), 'b c'),
  required('Exists', labels(has('foo', 'Exists')), 'a b'),
  required('DoesNotExist', labels(has('foo', 'DoesNotExist')), 'c'),
  required('Gt', labels(has('gen', 'Gt', '10')), 'b'),
  required('Lt', labels(has('gen', 'Lt', '20')), 'a'),
  required('Gt of what is no number', labels(has('foo', 'Gt', '1')), ''),
  required('all expressions of a term', labels(has('foo', 'Exists'), has('gen', 'Lt', '20')), 'a'),
  required('an empty term', {}, ''),
  required('expressions and fields', { ...labels(has('foo', 'Exists')), ...named('In', 'b', 'c') }, 'b'),
  required('all names but one', named('NotIn', 'b'), 'a c'),
  { name: 'terms are alternatives', pod: wanting(requires(labels(has('foo', 'In', 'bar')), labels(has('gen', 'In', '20')))), nodes: world, fits: 'a b' },
  { name: 'an empty term next to another', pod: wanting(requires({}, labels(has('foo', 'In', 'bar')))), nodes: world, fits: 'a' },
  { name: 'no terms', pod: wanting(requires()), nodes: world, fits: '' },
  { name: 'a selector and an affinity both', pod: wanting(requires(labels(has('foo', 'Exists'))), { nodeSelector: { gen: '20' } }), nodes: world, fits: 'b' },
  { name: 'a selector against an affinity', pod: wanting(requires(labels(has('foo', 'In', 'bar'))), { nodeSelector: { gen: '20' } }), nodes: world, fits: '' },
  { name: 'one node by name', pod: wanting(requires(named('In', 'b'))), nodes: world, fits: 'b' },
  {
    name: 'a name that no node has',
    pod: wanting(requires(named('In', 'z'))),
    nodes: world,
    message: all(3, "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
    code: 'UnschedulableAndUnresolvable',
  },
  { name: 'names of two terms', pod: wanting(requires(named('In', 'b'), named('In', 'c'))), nodes: world, fits: 'b c' },
  { name: 'a name or a label', pod: wanting(requires(named('In', 'c'), labels(has('foo', 'In', 'bar')))), nodes: world, fits: 'a c' },
  {
    name: 'two names at once',
    pod: wanting(requires({ matchFields: [...(named('In', 'a').matchFields ?? []), ...(named('In', 'b').matchFields ?? [])] })),
    nodes: world,
    message: '0/3 nodes are available: pod affinity terms conflict.',
    code: 'UnschedulableAndUnresolvable',
  },
  {
    name: 'one name of two lists',
    pod: wanting(requires({ matchFields: [...(named('In', 'a', 'b').matchFields ?? []), ...(named('In', 'b', 'c').matchFields ?? [])] })),
    nodes: world,
    fits: 'b',
  },
  { name: 'what the profile adds', pod: pod(), nodes: world, args: { addedAffinity: requires(labels(has('foo', 'In', 'bar'))) }, fits: 'a' },
  {
    name: 'what the profile adds has its own message',
    pod: wanting(requires(labels(has('foo', 'Exists')))),
    nodes: world,
    args: { addedAffinity: requires(labels(has('foo', 'In', 'x'))) },
    message: all(3, "node(s) didn't match scheduler-enforced node affinity"),
    code: 'UnschedulableAndUnresolvable',
  },
  {
    name: 'a node must match the added affinity of the profile and that of the pod',
    pod: wanting(requires(labels(has('gen', 'In', '20')))),
    nodes: world,
    args: { addedAffinity: requires(labels(has('foo', 'Exists'))) },
    fits: 'b',
  },
  { name: 'no preference', pod: pod(), nodes: world, scores: 'skip' },
  { name: 'a preference', pod: wanting(prefers([2, labels(has('foo', 'In', 'bar'))])), nodes: world, scores: { a: 100, b: 0, c: 0 } },
  {
    name: 'preferences add up',
    pod: wanting(
      prefers(
        [2, labels(has('foo', 'In', 'bar'))],
        [4, labels(has('key', 'In', 'value'))],
        [5, labels(has('foo', 'In', 'bar'), has('key', 'In', 'value'), has('az', 'In', 'az1'))],
      ),
    ),
    nodes: [labelled('a', { foo: 'bar' }), labelled('b', { key: 'value' }), labelled('c', { foo: 'bar', key: 'value', az: 'az1' })],
    // 2, 4 and 11
    scores: { a: 18, b: 36, c: 100 },
  },
  { name: 'a preference that no node meets', pod: wanting(prefers([5, labels(has('x', 'Exists'))])), nodes: two, scores: { a: 0, b: 0 } },
  {
    name: 'a preference for everything and nothing',
    pod: wanting(prefers([5, {}], [1, labels(has('foo', 'In', 'bar'))])),
    nodes: world,
    scores: { a: 100, b: 0, c: 0 },
  },
  { name: 'a preference by name', pod: wanting(prefers([3, named('In', 'c')])), nodes: world, scores: { a: 0, b: 0, c: 100 } },
  {
    name: 'what the profile prefers',
    pod: pod(),
    nodes: world,
    args: { addedAffinity: prefers([1, labels(has('foo', 'In', 'baz'))]) },
    scores: { a: 0, b: 100, c: 0 },
  },
  {
    name: 'what the profile prefers adds to what the pod prefers',
    pod: wanting(prefers([3, labels(has('foo', 'In', 'bar'))])),
    nodes: world,
    args: { addedAffinity: prefers([1, labels(has('foo', 'Exists'))]) },
    scores: { a: 100, b: 25, c: 0 },
  },
])

const ports = (...wanted: Partial<ContainerPort>[]): Container[] => [
  { name: 'c', image: 'app:1', ports: wanted.map((port) => ({ containerPort: 80, ...port })) },
]
const holding = (wanted: Partial<ContainerPort>[], on?: string) => pod({ ...(on ? { on } : {}), spec: { containers: ports(...wanted) } })
const porting = (name: string, mine: Partial<ContainerPort>[], theirs: Partial<ContainerPort>[], fits: string): Case => ({
  name,
  pod: holding(mine),
  nodes: two,
  placed: [holding(theirs, 'a')],
  fits,
})
placements('SCH-04', 'NodePorts', [
  porting('no host port', [{}], [{ hostPort: 80 }], 'a b'),
  porting('another port', [{ hostPort: 8080 }], [{ hostPort: 80 }], 'a b'),
  porting('the same port', [{ hostPort: 80 }], [{ hostPort: 80 }], 'b'),
  porting('another protocol', [{ hostPort: 80, protocol: 'UDP' }], [{ hostPort: 80, protocol: 'TCP' }], 'a b'),
  porting('TCP is meant where nothing is said', [{ hostPort: 80 }], [{ hostPort: 80, protocol: 'TCP' }], 'b'),
  porting('SCTP', [{ hostPort: 80, protocol: 'SCTP' }], [{ hostPort: 80, protocol: 'SCTP' }], 'b'),
  porting('another address', [{ hostPort: 80, hostIP: '127.0.0.1' }], [{ hostPort: 80, hostIP: '127.0.0.2' }], 'a b'),
  porting('the same address', [{ hostPort: 80, hostIP: '127.0.0.1' }], [{ hostPort: 80, hostIP: '127.0.0.1' }], 'b'),
  porting('every address is held', [{ hostPort: 80, hostIP: '127.0.0.1' }], [{ hostPort: 80, hostIP: '0.0.0.0' }], 'b'),
  porting('every address is wanted', [{ hostPort: 80 }], [{ hostPort: 80, hostIP: '127.0.0.1' }], 'b'),
  porting('one of several', [{ hostPort: 8001 }, { hostPort: 8002 }], [{ hostPort: 8002, protocol: 'UDP' }, { hostPort: 8001 }], 'b'),
  porting('another address and protocol', [{ hostPort: 80, hostIP: '127.0.0.1', protocol: 'UDP' }], [{ hostPort: 80, hostIP: '0.0.0.0' }], 'a b'),
  {
    name: 'a sidecar’s port',
    pod: holding([{ hostPort: 80 }]),
    nodes: two,
    placed: [pod({ on: 'a', spec: { initContainers: ports({ hostPort: 80 }).map((one) => ({ ...one, restartPolicy: 'Always' })) } })],
    fits: 'b',
  },
  {
    name: 'an init container’s port',
    pod: holding([{ hostPort: 80 }]),
    nodes: two,
    placed: [pod({ on: 'a', spec: { initContainers: ports({ hostPort: 80 }) } })],
    fits: 'a b',
  },
  {
    name: 'the message',
    pod: holding([{ hostPort: 80 }]),
    nodes: [node('a')],
    placed: [holding([{ hostPort: 80 }], 'a')],
    message: all(1, "node(s) didn't have free ports for the requested pod ports"),
    code: 'Unschedulable',
  },
])

const mb = 1024 * 1024
const running = (...images: string[]) => pod({ spec: { containers: images.map((image, i) => ({ name: `c${i}`, image })) } })
const holds = (name: string, images: NonNullable<NodeSketch['images']>) => node(name, { images })
const first = holds('a', { 'gcr.io/40:latest': 40 * mb, 'gcr.io/300:latest': 300 * mb, 'gcr.io/2000:latest': 2000 * mb })
const second = holds('b', { 'gcr.io/250:latest': 250 * mb, 'gcr.io/10:latest': 10 * mb, 'gcr.io/4000:latest': 4000 * mb })
placements('SCH-10', 'ImageLocality', [
  // a: 40/2 is below the least that counts; b: (250/2 - 23) / (2*1000 - 23)
  { name: 'two images on different nodes', pod: running('gcr.io/40', 'gcr.io/250'), nodes: [first, second], scores: { a: 0, b: 5 } },
  // a: (40+300)/2 of two
  { name: 'both images on one node', pod: running('gcr.io/40', 'gcr.io/300'), nodes: [first, second], scores: { a: 7, b: 0 } },
  // b: 4000/2, at most 2*1000
  { name: 'no more than everything', pod: running('gcr.io/10', 'gcr.io/4000'), nodes: [first, second], scores: { a: 0, b: 100 } },
  { name: 'one large image', pod: running('gcr.io/2000'), nodes: [first, second], scores: { a: 100, b: 0 } },
  { name: 'an image that no node has', pod: running('other'), nodes: [first, second], scores: 'skip' },
  {
    name: 'an image that all nodes have counts in full',
    pod: running('gcr.io/300'),
    nodes: [first, holds('b', { 'gcr.io/300:latest': 300 * mb })],
    scores: { a: 28, b: 28 },
  },
  // 300 on one of three nodes counts as 100
  { name: 'the rarer the less it counts', pod: running('gcr.io/300'), nodes: [first, second, node('c')], scores: { a: 7, b: 0, c: 0 } },
  { name: 'a tag other than latest is another image', pod: running('gcr.io/300:v1'), nodes: [first, second], scores: 'skip' },
  {
    name: 'a registry’s port is no tag',
    pod: running('reg:5000/app'),
    nodes: [holds('a', { 'reg:5000/app:latest': 1000 * mb }), node('b')],
    scores: { a: 48, b: 0 },
  },
  {
    name: 'init containers count too',
    pod: pod({ spec: { containers: [{ name: 'c', image: 'gcr.io/40' }], initContainers: [{ name: 'i', image: 'gcr.io/300' }] } }),
    nodes: [first, second],
    scores: { a: 7, b: 0 },
  },
  {
    name: 'images mounted as volumes count too',
    pod: pod({ spec: { containers: [{ name: 'c', image: 'gcr.io/40' }], volumes: [{ name: 'v', image: { reference: 'gcr.io/300' } }] } }),
    nodes: [first, second],
    // (40+300)/2 of one container
    scores: { a: 15, b: 0 },
  },
])

const restartsAll: Container = {
  name: 'c',
  image: 'app:1',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [1] } }],
}
const restart = 'RestartAllContainersOnContainerExits'
placements('SCH-01', 'NodeDeclaredFeatures', [
  { name: 'a pod that needs nothing special', pod: pod(), nodes: two, fits: 'a b' },
  {
    name: 'a container that restarts all',
    pod: pod({ spec: { containers: [restartsAll] } }),
    nodes: [node('a'), node('b', { declares: ['Other', restart] })],
    fits: 'b',
  },
  {
    name: 'an init container that restarts all',
    pod: pod({ spec: { initContainers: [restartsAll] } }),
    nodes: [node('a', { declares: [restart] }), node('b')],
    fits: 'a',
  },
  {
    name: 'users of its own on the host’s network',
    pod: pod({ spec: { hostNetwork: true, hostUsers: false } }),
    nodes: [node('a', { declares: ['UserNamespacesHostNetworkSupport'] }), node('b', { declares: [restart] })],
    fits: 'a',
  },
  { name: 'the host’s users on the host’s network', pod: pod({ spec: { hostNetwork: true } }), nodes: two, fits: 'a b' },
  {
    name: 'both features',
    pod: pod({ spec: { hostNetwork: true, hostUsers: false, containers: [restartsAll] } }),
    nodes: [node('a', { declares: [restart] })],
    message: all(1, "node(s) didn't match Pod's required features"),
    code: 'UnschedulableAndUnresolvable',
  },
])
