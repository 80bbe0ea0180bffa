import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#api/gen/types/core.v1'
import { nodeAddress } from '#api/helpers/nodes'
import { cniConfig, routeChanges, wantedRoutes } from './podNetwork.ts'

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

test('NET-03 the bridge takes its addresses from the node’s pod CIDR', () => {
  const { plugins } = cniConfig('10.244.3.0/24') as { plugins: { type: string; ipam?: { ranges: unknown } }[] }
  assert.deepEqual(
    plugins.map((plugin) => plugin.type),
    ['bridge', 'portmap'],
  )
  assert.deepEqual(plugins[0]?.ipam?.ranges, [[{ subnet: '10.244.3.0/24' }]])
})

test('NET-05 one route per other real node that has a pod CIDR and an address', () => {
  const nodes = [
    node('self', '10.244.0.0/24', '10.88.0.10'),
    node('b', '10.244.1.0/24', '10.88.0.11'),
    node('no-cidr', undefined, '10.88.0.12'),
    node('no-address', '10.244.3.0/24', undefined),
    node('sim', '10.244.4.0/24', '10.1.1.1', 'simulated://1'),
  ]
  assert.deepEqual(wantedRoutes(nodes, 'self', nodeAddress), [{ cidr: '10.244.1.0/24', via: '10.88.0.11' }])
})

test('NET-05 only changed routes are sent to the kernel', () => {
  const a = { cidr: '10.244.1.0/24', via: '10.88.0.11' }
  const b = { cidr: '10.244.2.0/24', via: '10.88.0.12' }
  assert.deepEqual(routeChanges([a, b], [a, b]), [])
  assert.deepEqual(routeChanges([a, b], [{ ...a, via: '10.88.0.99' }]), [
    'route del 10.244.2.0/24 proto 107',
    'route replace 10.244.1.0/24 via 10.88.0.99 proto 107',
  ])
})
