import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#api/gen/types/core.v1'
import { cniConfig, podRoutes } from './podNetwork.ts'

const node = (name: string, podCIDR: string | undefined, address: string | undefined, runtime = 'containerd://1.6.20'): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec: { podCIDR },
  status: {
    addresses: address ? [{ type: 'InternalIP', address }] : [],
    nodeInfo: { containerRuntimeVersion: runtime } as Node['status']['nodeInfo'],
  },
})

test('NET-03 pods take their addresses from the node’s pod CIDR', () => {
  const { plugins } = cniConfig(['10.244.3.0/24']) as { plugins: { type: string; ipam?: { ranges: unknown } }[] }
  assert.deepEqual(
    plugins.map((plugin) => plugin.type),
    ['ptp', 'portmap'],
  )
  assert.deepEqual(plugins[0]?.ipam?.ranges, [[{ subnet: '10.244.3.0/24' }]])
})

test('NET-04 a node that limits bandwidth has a plugin for it, which the runtime tells what the annotations say', () => {
  const named = (isOwn: boolean) =>
    (cniConfig(['10.244.3.0/24'], { isOwn, limitsBandwidth: true }).plugins as { type: string; capabilities?: object }[]).map(({ type, capabilities = {} }) => [
      type,
      ...Object.keys(capabilities),
    ])
  assert.deepEqual(named(false), [['ptp'], ['bandwidth', 'bandwidth'], ['portmap', 'portMappings']])
  assert.deepEqual(named(true), [['skiff', 'portMappings', 'bandwidth']])
})

test('NET-05 one route per other real node that has a pod CIDR and an address', () => {
  const nodes = [
    node('self', '10.244.0.0/24', '10.88.0.10'),
    node('b', '10.244.1.0/24', '10.88.0.11'),
    node('no-cidr', undefined, '10.88.0.12'),
    node('no-address', '10.244.3.0/24', undefined),
    node('sim', '10.244.4.0/24', '10.1.1.1', 'simulated://1'),
  ]
  assert.deepEqual(podRoutes(nodes, 'self'), [{ cidr: '10.244.1.0/24', via: '10.88.0.11' }])
})

test('NET-05 a dual-stack node has a route for each family, through its address of that family', () => {
  const dual = node('b', '10.244.1.0/24', '10.88.0.11')
  const b: Node = {
    ...dual,
    spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd01:0:0:1::/64'] },
    status: {
      ...dual.status,
      addresses: [
        { type: 'InternalIP', address: '10.88.0.11' },
        { type: 'InternalIP', address: 'fd00::11' },
      ],
    },
  }
  assert.deepEqual(podRoutes([b], 'self'), [
    { cidr: '10.244.1.0/24', via: '10.88.0.11' },
    { cidr: 'fd01:0:0:1::/64', via: 'fd00::11' },
  ])
  assert.deepEqual(podRoutes([{ ...b, status: dual.status }], 'self'), [{ cidr: '10.244.1.0/24', via: '10.88.0.11' }])
})

test('NET-03 a dual-stack node has a range and a default route of each family', () => {
  const { plugins } = cniConfig(['10.244.1.0/24', 'fd01:0:0:1::/64']) as { plugins: { ipam?: unknown }[] }
  assert.deepEqual(plugins[0]?.ipam, {
    type: 'host-local',
    ranges: [[{ subnet: '10.244.1.0/24' }], [{ subnet: 'fd01:0:0:1::/64' }]],
    routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }],
  })
})
