import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#api/gen/types/core.v1'
import type { Dialer } from '#apiserver/backends/reach'
import type { ObjectReader } from '#apiserver/core/objectReader'
import { createClusterReach } from './clusterReach.ts'
import { controlRoutes } from './controlRoutes.ts'

const node = (name: string, podCIDR: string, address: string, { runtime = 'containerd://1', ready = true } = {}) =>
  ({
    metadata: { name },
    spec: { podCIDR, podCIDRs: [podCIDR] },
    status: {
      addresses: [{ type: 'InternalIP', address }],
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      nodeInfo: { containerRuntimeVersion: runtime },
    },
  }) as unknown as Node

const nodes = [
  node('a-node-1', '10.244.0.0/24', '10.88.7.10', { ready: false }),
  node('a-node-2', '10.244.1.0/24', '10.88.7.11'),
  node('a-sim-1', '10.244.2.0/24', '198.18.0.1', { runtime: 'simulated://1' }),
  node('joined', '10.244.3.0/24', '192.0.2.9'),
]
const reader = {
  list: ({ resource }: { readonly resource: string }) => (resource === 'nodes' ? nodes : [{ spec: { cidrs: ['10.112.0.0/20'] } }]),
} as unknown as ObjectReader
const dial: Dialer = () => assert.fail('nothing is dialled')
const ranges = { clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' }
const isOwn = (name: string) => name.startsWith('a-node-')

const cases: readonly { name: string; address: string; want: 'dialer' | 'host' | RegExp; without?: RegExp }[] = [
  { name: 'a pod of a real node', address: '10.244.1.7', want: 'dialer' },
  { name: 'a cluster IP', address: '10.96.0.10', want: 'dialer', without: /10\.96\.0\.10 is a cluster IP, which only real nodes serve/ },
  { name: 'a cluster IP of an added range', address: '10.112.0.5', want: 'dialer', without: /10\.112\.0\.5 is a cluster IP/ },
  { name: 'a pod of a simulated node', address: '10.244.2.7', want: /10\.244\.2\.7 belongs to node a-sim-1, which is simulated/ },
  {
    name: 'an address of the pods’ range that no node has',
    address: '10.244.200.7',
    want: /10\.244\.200\.7 is in the range of this cluster's pods, and no node has it/,
  },
  { name: 'a pod’s address written as IPv6', address: '::ffff:10.244.1.7', want: /no node has it/ },
  { name: 'a pod of a node that joined from elsewhere', address: '10.244.3.7', want: 'host' },
  { name: 'a node', address: '10.88.7.11', want: 'host' },
  { name: 'a simulated node', address: '198.18.0.1', want: /198\.18\.0\.1 is the address of node a-sim-1, which is simulated/ },
  { name: 'an address that no simulated node has', address: '198.18.0.2', want: 'host' },
  { name: 'loopback', address: '127.0.0.1', want: 'host' },
  { name: 'an address outside', address: '203.0.113.1', want: 'host' },
]
for (const { name, address, want, without } of cases) {
  const reached = want instanceof RegExp ? 'refused with the reason' : want === 'dialer' ? 'dialled in the cluster’s network' : 'connected to by the server'
  test(`API-29 ${name} is ${reached}`, () => {
    const { dialerFor } = createClusterReach({ ranges, reader, dial, isOwn })
    if (want instanceof RegExp) assert.throws(() => dialerFor(address), want)
    else assert.equal(dialerFor(address), want === 'dialer' ? dial : undefined)
    if (!without) return
    const simulated = createClusterReach({ ranges, reader, isOwn })
    assert.throws(() => simulated.dialerFor(address), without)
  })
}

test('NET-08 pods and cluster IPs of both families are dialled, and have routes through the addresses of nodes of their family', () => {
  const both = { clusterCidr: '10.244.0.0/16,fd00:1::/56', serviceCidr: '10.96.0.0/16,fd00:2::/112' }
  const [first] = nodes
  const dual = {
    ...first,
    spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24', 'fd00:1::/64'] },
    status: { ...first?.status, addresses: ['10.88.7.10', 'fd00:3::a'].map((address) => ({ type: 'InternalIP', address })) },
  } as unknown as Node
  const { dialerFor } = createClusterReach({ ranges: both, reader: { list: () => [dual] } as unknown as ObjectReader, dial, isOwn })
  for (const address of ['10.244.0.7', 'fd00:1::7', '10.96.0.10', 'fd00:2::a']) assert.equal(dialerFor(address), dial, address)
  assert.equal(dialerFor('fd00:3::a'), undefined)
  assert.deepEqual(
    controlRoutes([dual], ['10.96.0.0/16', 'fd00:2::/112'], () => true),
    [
      { cidr: '10.244.0.0/24', via: '10.88.7.10' },
      { cidr: 'fd00:1::/64', via: 'fd00:3::a' },
      { cidr: '10.96.0.0/16', via: '10.88.7.10' },
      { cidr: 'fd00:2::/112', via: 'fd00:3::a' },
    ],
  )
})

test('API-29 the API server’s namespace has routes to the pods of real nodes on the bridge, and to cluster IPs through a Ready one', () => {
  const isOnLink = (address: string) => address.startsWith('10.88.7.')
  const pods = [
    { cidr: '10.244.0.0/24', via: '10.88.7.10' },
    { cidr: '10.244.1.0/24', via: '10.88.7.11' },
  ]
  assert.deepEqual(controlRoutes(nodes, ['10.96.0.0/16', '10.96.0.0/16', '10.112.0.0/20', 'fd00::/112'], isOnLink), [
    ...pods,
    { cidr: '10.96.0.0/16', via: '10.88.7.11' },
    { cidr: '10.112.0.0/20', via: '10.88.7.11' },
  ])
  assert.deepEqual(controlRoutes(nodes.slice(0, 1), ['10.96.0.0/16'], isOnLink), [pods[0], { cidr: '10.96.0.0/16', via: '10.88.7.10' }])
  assert.deepEqual(controlRoutes([], ['10.96.0.0/16'], isOnLink), [])
})
