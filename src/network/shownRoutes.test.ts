import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeNeighbours, nodeRoutes } from './shownRoutes.ts'

const ranges = { clusterCidrs: ['10.244.0.0/16', 'fd01::/48'], podCidrs: ['10.244.0.0/24'] }
const wanted = [
  { cidr: '10.244.1.0/24', via: '10.88.0.11' },
  { cidr: '10.244.2.0/24', via: '10.88.0.12' },
]

test('NET-05 nodeRoutes distinguishes routes that are present, missing and foreign, and those to the node’s own pods', () => {
  const kernel = [
    { dst: 'default', gateway: '10.88.0.1', dev: 'eth0' },
    { dst: '10.88.0.0/24', dev: 'eth0' },
    { dst: '10.244.0.7', dev: 'veth1' },
    { dst: '10.244.1.0/24', gateway: '10.88.0.11', dev: 'eth0' },
    { dst: '10.244.2.0/24', gateway: '10.88.0.99', dev: 'eth0' },
    { dst: '10.244.0.9', type: 'blackhole' },
    { dst: '10.244.3.0/24', dev: 'tun0' },
  ]
  assert.deepEqual(
    nodeRoutes(kernel, wanted, ranges).map(({ cidr, via, device, state }) => [cidr, via, device, state]),
    [
      ['10.244.1.0/24', '10.88.0.11', 'eth0', 'present'],
      ['10.244.2.0/24', '10.88.0.12', undefined, 'missing'],
      ['10.244.0.7', undefined, 'veth1', 'local'],
      ['10.244.2.0/24', '10.88.0.99', 'eth0', 'foreign'],
      ['10.244.0.9', 'blackhole', undefined, 'foreign'],
      ['10.244.3.0/24', undefined, 'tun0', 'foreign'],
    ],
  )
})

test('NET-05 nodeNeighbours keeps other nodes and pods, and drops other neighbours', () => {
  const kernel = [
    { dst: '10.88.0.11', dev: 'eth0', lladdr: '02:00:00:00:00:01', state: ['REACHABLE'] },
    { dst: '10.88.0.1', dev: 'eth0', state: ['STALE'] },
    { dst: '10.244.0.7', dev: 'veth1', state: [] },
    { dst: 'fd01::7', dev: 'veth1', state: ['FAILED'] },
  ]
  assert.deepEqual(
    nodeNeighbours(kernel, ['10.88.0.11'], ranges.clusterCidrs).map(({ address, linkAddress, state }) => [address, linkAddress, state]),
    [
      ['10.88.0.11', '02:00:00:00:00:01', 'REACHABLE'],
      ['10.244.0.7', undefined, 'NONE'],
      ['fd01::7', undefined, 'FAILED'],
    ],
  )
})

test('NET-05 nodeRoutes shows the first of two routes of the kernel that differ in their device only', () => {
  const kernel = ['eth0', 'eth1'].map((dev) => ({ dst: '10.244.1.0/24', gateway: '10.88.0.11', dev }))
  assert.deepEqual(nodeRoutes(kernel, wanted.slice(0, 1), ranges), [{ cidr: '10.244.1.0/24', via: '10.88.0.11', device: 'eth0', state: 'present' }])
})
