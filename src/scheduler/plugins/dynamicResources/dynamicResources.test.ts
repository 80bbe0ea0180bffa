/** Which devices and nodes claims get: the real plugin in the default profile, with slices and claims that tests hand in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { Device, DeviceClass, DeviceRequest, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import type { KubeObject } from '#api/machinery/meta'
import { deviceClasses, resourceClaims, resourceSlices } from '#client/builtIn'
import type { Resource } from '#client/client'
import { podInfo } from '#scheduler/framework/podInfo'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'

const driver = 'gpu.example.com'
const apiVersion = 'resource.k8s.io/v1'

function gpuClass(expression = `device.driver == "${driver}"`): DeviceClass {
  return { apiVersion, kind: 'DeviceClass', metadata: { name: 'gpu' }, spec: { selectors: [{ cel: { expression } }] } }
}

function sliceOf(name: string, devices: Device[], spec: Partial<ResourceSlice['spec']> = {}): ResourceSlice {
  const pool = { name: spec.nodeName ?? name, generation: 1, resourceSliceCount: 1 }
  return { apiVersion, kind: 'ResourceSlice', metadata: { name }, spec: { driver, pool, devices, ...spec } }
}

const onNode = (nodeName: string, ...devices: Device[]) => sliceOf(`${nodeName}-slice`, devices, { nodeName })
const gpu = (name: string, more: Partial<Device> = {}): Device => ({ name, ...more })

function claimOf(
  name: string,
  requests: DeviceRequest[],
  more: Partial<ResourceClaim['spec']['devices']> = {},
  status: ResourceClaim['status'] = {},
): ResourceClaim {
  return {
    apiVersion,
    kind: 'ResourceClaim',
    metadata: { name, namespace: 'default', uid: name, resourceVersion: '1' },
    spec: { devices: { requests, ...more } },
    status,
  }
}

type Exactly = NonNullable<DeviceRequest['exactly']>
const exactly = (more: Partial<Exactly> = {}, name = 'r'): DeviceRequest => ({ name, exactly: { deviceClassName: 'gpu', ...more } })
const selecting = (expression: string) => [{ cel: { expression } }]

function podWith(...claims: string[]): Pod {
  return podOf('p', { resourceClaims: claims.map((name) => ({ name, resourceClaimName: name })) })
}

function cluster(slices: ResourceSlice[], claims: ResourceClaim[], nodes: Node[] = [nodeOf({ name: 'a' }), nodeOf({ name: 'b' })], deviceClass = gpuClass()) {
  const objects: [Resource<KubeObject>, KubeObject[]][] = [
    [deviceClasses, [deviceClass]],
    [resourceSlices, slices],
    [resourceClaims, claims],
  ]
  const fixture = schedulerFixture({ nodes, objects })
  /** The node, and `request=device` for each device promised on it. */
  const place = (pod: Pod): string => {
    const result = fixture.schedule(pod)
    if (!('placed' in result)) return (fixture.decide(pod) as { message: string }).message
    const { state, node } = result.placed
    for (const plugin of fixture.profile.points.reserve) plugin.reserve(state, podInfo(pod), node.name)
    const allocations = (
      state.read({ name: 'DynamicResources' }) as unknown as { allocations: Map<string, NonNullable<ResourceClaim['status']['allocation']>> }
    )?.allocations
    const results = [...allocations.values()].flatMap(({ devices }) => devices?.results ?? [])
    return [node.name, ...results.map(({ request, device }) => `${request}=${device}`)].join(' ')
  }
  return { ...fixture, place }
}

const none = '0/2 nodes are available: 2 cannot allocate all claims.'
const strings = (values: Record<string, string>) => Object.fromEntries(Object.entries(values).map(([name, string]) => [name, { string }]))

interface Case {
  readonly name: string
  readonly slices: ResourceSlice[]
  readonly claims: ResourceClaim[]
  readonly pod?: Pod
  readonly nodes?: Node[]
  readonly want: string
}

const firstAvailable = (...names: [string, string][]): DeviceRequest => ({
  name: 'r',
  firstAvailable: names.map(([name, model]) => ({ name, deviceClassName: 'gpu', selectors: selecting(`device.attributes["${driver}"].model == "${model}"`) })),
})
const model = (name: string, value: string) => gpu(name, { attributes: strings({ model: value }) })
const numa = (name: string, value: string) => gpu(name, { attributes: strings({ [`${driver}/numa`]: value }) })
const allocatedOn = (node: string, device: string) => ({
  devices: { results: [{ request: 'r', driver, pool: node, device }] },
  nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }] },
})
const mib = (amount: string) => ({ memory: { value: amount } })
const partition = (name: string, amount: string) => gpu(name, { consumesCounters: [{ counterSet: 'card', counters: mib(amount) }] })
const partitioned = [
  sliceOf('counters', [], {
    nodeName: 'a',
    pool: { name: 'p', generation: 1, resourceSliceCount: 2 },
    sharedCounters: [{ name: 'card', counters: mib('40Gi') }],
  }),
  sliceOf('parts', [partition('whole', '40Gi'), partition('half-0', '20Gi'), partition('half-1', '20Gi')], {
    nodeName: 'a',
    pool: { name: 'p', generation: 1, resourceSliceCount: 2 },
  }),
]
const shared = gpu('s', {
  allowMultipleAllocations: true,
  capacity: { memory: { value: '10Gi', requestPolicy: { default: '1Gi', validRange: { min: '1Gi', step: '1Gi' } } } },
})
const memory = (amount: string) => exactly({ capacity: { requests: { memory: amount } } })
const tainted = gpu('t', { taints: [{ key: 'bad', value: 'yes', effect: 'NoSchedule' }] })

const cases: Case[] = [
  { name: 'the node whose slice has a device', slices: [onNode('b', gpu('g0'))], claims: [claimOf('c', [exactly()])], want: 'b r=g0' },
  {
    name: 'a selector over attributes, with cel.bind',
    slices: [onNode('a', model('g0', 'old')), onNode('b', model('g1', 'new'))],
    claims: [claimOf('c', [exactly({ selectors: selecting(`cel.bind(d, device.attributes["${driver}"], has(d.model) && d.model == "new")`) })])],
    want: 'b r=g1',
  },
  {
    name: 'a selector over capacity and versions',
    slices: [
      onNode('a', gpu('g0', { capacity: { memory: { value: '8Gi' } }, attributes: { v: { version: '1.2.0' } } })),
      onNode('b', gpu('g1', { capacity: { memory: { value: '16Gi' } }, attributes: { v: { version: '1.10.0' } } })),
    ],
    claims: [
      claimOf('c', [
        exactly({
          selectors: selecting(
            `device.capacity["${driver}"].memory.isGreaterThan(quantity("10Gi")) && device.attributes["${driver}"].v.isGreaterThan(semver("1.9.0"))`,
          ),
        }),
      ]),
    ],
    want: 'b r=g1',
  },
  {
    name: 'a domain that the device does not have is empty',
    slices: [onNode('a', gpu('g0'))],
    claims: [
      claimOf('c', [exactly({ selectors: selecting('!has(device.attributes["other.example.com"].x) && !("other.example.com" in device.attributes)') })]),
    ],
    want: 'a r=g0',
  },
  { name: 'more than there are', slices: [onNode('a', gpu('g0'))], claims: [claimOf('c', [exactly({ count: 2 })])], want: none },
  { name: 'several', slices: [onNode('a', gpu('g0'), gpu('g1'))], claims: [claimOf('c', [exactly({ count: 2 })])], want: 'a r=g0 r=g1' },
  {
    name: 'all of those that match',
    slices: [onNode('a', model('g0', 'x'), model('g1', 'y'), model('g2', 'x'))],
    claims: [claimOf('c', [exactly({ allocationMode: 'All', selectors: selecting(`device.attributes["${driver}"].model == "x"`) })])],
    want: 'a r=g0 r=g2',
  },
  { name: 'all, where there are none', slices: [], claims: [claimOf('c', [exactly({ allocationMode: 'All' })])], want: none },
  {
    name: 'a device that another claim has',
    slices: [onNode('a', gpu('g0')), onNode('b', gpu('g0'))],
    claims: [claimOf('other', [exactly()], {}, { allocation: allocatedOn('a', 'g0') }), claimOf('c', [exactly()])],
    want: 'b r=g0',
  },
  {
    name: 'administrators may have it, too',
    slices: [onNode('a', gpu('g0'))],
    claims: [claimOf('other', [exactly()], {}, { allocation: allocatedOn('a', 'g0') }), claimOf('c', [exactly({ adminAccess: true })])],
    want: 'a r=g0',
  },
  {
    name: 'two claims of one pod get different devices',
    slices: [onNode('a', gpu('g0')), onNode('b', gpu('g0'), gpu('g1'))],
    claims: [claimOf('c', [exactly()]), claimOf('d', [exactly({}, 's')])],
    pod: podWith('c', 'd'),
    want: 'b r=g0 s=g1',
  },
  {
    name: 'the search goes back when a later request finds nothing',
    slices: [onNode('a', model('g0', 'x'), model('g1', 'y'))],
    claims: [claimOf('c', [exactly(), exactly({ selectors: selecting(`device.attributes["${driver}"].model == "x"`) }, 's')])],
    want: 'a r=g1 s=g0',
  },
  {
    name: 'the first alternative that there is',
    slices: [onNode('a', model('g0', 'small'))],
    claims: [claimOf('c', [firstAvailable(['big', 'big'], ['small', 'small'])])],
    want: 'a r/small=g0',
  },
  {
    name: 'the node with the better alternative',
    slices: [onNode('a', model('g0', 'small')), onNode('b', model('g1', 'big'))],
    claims: [claimOf('c', [firstAvailable(['big', 'big'], ['small', 'small'])])],
    want: 'b r/big=g1',
  },
  {
    name: 'attributes that must match',
    slices: [onNode('a', numa('g0', '0'), numa('g1', '1'), numa('g2', '1'))],
    claims: [claimOf('c', [exactly({ count: 2 })], { constraints: [{ matchAttribute: `${driver}/numa` }] })],
    want: 'a r=g1 r=g2',
  },
  {
    name: 'attributes that must differ, in three of one request',
    slices: [onNode('a', numa('g0', '0'), numa('g1', '1'), numa('g2', '0'), numa('g3', '2'))],
    claims: [claimOf('c', [exactly({ count: 3 })], { constraints: [{ requests: ['r'], distinctAttribute: `${driver}/numa` }] })],
    want: 'a r=g0 r=g1 r=g3',
  },
  { name: 'a tainted device', slices: [onNode('a', tainted)], claims: [claimOf('c', [exactly()])], want: none },
  {
    name: 'a tainted device that is tolerated',
    slices: [onNode('a', tainted)],
    claims: [claimOf('c', [exactly({ tolerations: [{ key: 'bad', operator: 'Equal', value: 'yes', effect: 'NoSchedule' }] })])],
    want: 'a r=t',
  },
  {
    name: 'partitions exclude each other by their counters',
    slices: partitioned,
    claims: [claimOf('c', [exactly({ selectors: selecting('true') }), exactly({}, 's')])],
    want: 'a r=half-0 s=half-1',
  },
  {
    name: 'a partition is in use',
    slices: partitioned,
    claims: [
      claimOf('other', [exactly()], {}, { allocation: { devices: { results: [{ request: 'r', driver, pool: 'p', device: 'half-1' }] } } }),
      claimOf('c', [exactly()]),
    ],
    want: 'a r=half-0',
  },
  {
    name: 'shares of a device, rounded up',
    slices: [onNode('a', shared)],
    claims: [claimOf('c', [memory('4500Mi')]), claimOf('d', [memory('5Gi')])],
    pod: podWith('c', 'd'),
    want: 'a r=s r=s',
  },
  {
    name: 'shares that are more than the whole',
    slices: [onNode('a', shared)],
    claims: [claimOf('c', [memory('5500Mi')]), claimOf('d', [memory('5Gi')])],
    pod: podWith('c', 'd'),
    want: none,
  },
  {
    name: 'slices for nodes by label, and per device',
    nodes: [nodeOf({ name: 'a' }), nodeOf({ name: 'b', labels: { fabric: '1' } })],
    slices: [
      sliceOf('n', [gpu('g0')], { nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'fabric', operator: 'In', values: ['1'] }] }] } }),
      sliceOf('d', [gpu('h0', { nodeName: 'a' }), gpu('h1', { nodeName: 'b' })], { perDeviceNodeSelection: true }),
    ],
    claims: [claimOf('c', [exactly({ count: 2 })])],
    want: 'b r=h1 r=g0',
  },
  {
    name: 'a slice for all nodes',
    slices: [sliceOf('x', [gpu('g0')], { allNodes: true })],
    nodes: [nodeOf({ name: 'a' })],
    claims: [claimOf('c', [exactly()])],
    want: 'a r=g0',
  },
  {
    name: 'an incomplete pool',
    slices: [sliceOf('x', [gpu('g0')], { nodeName: 'a', pool: { name: 'p', generation: 1, resourceSliceCount: 2 } })],
    claims: [claimOf('c', [exactly()])],
    want: none,
  },
  {
    name: 'an older generation',
    slices: [
      sliceOf('x', [gpu('g0')], { nodeName: 'a', pool: { name: 'p', generation: 1, resourceSliceCount: 1 } }),
      sliceOf('y', [gpu('g1')], { nodeName: 'b', pool: { name: 'p', generation: 2, resourceSliceCount: 1 } }),
    ],
    claims: [claimOf('c', [exactly()])],
    want: 'b r=g1',
  },
  {
    name: 'a name twice in a pool',
    slices: [onNode('a', gpu('g0'), gpu('g0'))],
    claims: [claimOf('c', [exactly()])],
    want: '0/2 nodes are available: 1 cannot allocate all claims, 1 invalid resource pools were encountered.',
  },
  {
    name: 'a claim that is allocated already keeps the pod near its devices',
    slices: [],
    claims: [claimOf('c', [exactly()], {}, { allocation: allocatedOn('b', 'g0') })],
    want: 'b',
  },
  {
    name: 'a class that is missing',
    slices: [],
    claims: [claimOf('c', [{ name: 'r', exactly: { deviceClassName: 'tpu' } }])],
    want: '0/2 nodes are available: request r: device class tpu does not exist.',
  },
  { name: 'a claim that is missing', slices: [], claims: [], want: '0/2 nodes are available: resourceclaim.resource.k8s.io "c" not found.' },
]

for (const { name, slices, claims, pod = podWith('c'), nodes, want } of cases)
  test(`DRA-04 DRA-02 devices: ${name}`, () => assert.equal(cluster(slices, claims, nodes).place(pod), want))

test('DRA-02 devices that are promised are taken until the promise is given up', () => {
  const { schedule, decide, profile } = cluster([onNode('a', gpu('g0'))], [claimOf('c', [exactly()]), claimOf('d', [exactly()])])
  const pod = podWith('c')
  const result = schedule(pod)
  assert.ok('placed' in result)
  const { state, node } = result.placed
  for (const plugin of profile.points.reserve) plugin.reserve(state, podInfo(pod), node.name)
  assert.deepEqual(decide({ ...podWith('d') }), { message: none })
  assert.deepEqual(decide(pod), { message: '0/2 nodes are available: resource claim default/c is in the process of being allocated.' })
  for (const plugin of profile.points.reserve) plugin.unreserve?.(state, podInfo(pod), node.name)
  assert.deepEqual(decide(podWith('d')), { on: 'a' })
})

test('DRA-02 a selector that fails is an error of the claim, not a refusal by nodes', () => {
  const bad = cluster([onNode('a', gpu('g0'))], [claimOf('c', [exactly({ selectors: selecting(`device.attributes["${driver}"].none == "x"`) })])])
  assert.throws(() => bad.decide(podWith('c')), /claim default\/c: selector #0: CEL runtime error: no such key: none/)
})
