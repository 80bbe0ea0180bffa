import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { CommandError } from '#cli/exitCodes'
import type { Exec, ExecOptions } from '#host/exec'
import { ensureNodeNetwork, nodeNetwork } from '../vnode/clusterNetwork.ts'
import { ensureClusterNetwork, rangesWithoutNetwork } from './clusterNetworks.ts'
import type { ClusterState } from './clusterState.ts'

const state: ClusterState = {
  name: 'a',
  id: '0007',
  port: 40_000,
  nodes: [{ name: 'a-node-1', index: 0 }],
  simulatedNodes: [],
  network: { bridge: 'skiff-0007', prefix: '10.88.7' },
  ranges: { clusterCidr: '10.245.0.0/16', serviceCidr: '10.97.0.0/16' },
  verbosity: 2,
}

/** A host with these interfaces, none of which is the cluster's; keeps the commands that change it. */
function hostWith(interfaces: readonly object[]) {
  const changes: string[] = []
  const exec = {
    run: async (_command: string, args: readonly string[], { input = '' }: ExecOptions = {}) => {
      const result = { code: 0, stdout: '', stderr: '', timedOut: false }
      if (args.includes('-json')) return { ...result, stdout: args.includes('addr') ? JSON.stringify(interfaces) : '[]' }
      if (args[0] === 'link' && args[1] === 'show') return { ...result, code: 1 }
      changes.push(...[args.join(' '), String(input)].join('\n').split('\n').filter(Boolean))
      return result
    },
  } as unknown as Exec
  return { deps: { clock: new VirtualClock(), exec, home: '/nowhere' }, changes }
}

test('NET-01 after a restart of the host, up makes the bridge with its alias and a namespace without a default route', async () => {
  const { deps, changes } = hostWith([{ ifname: 'eth0', addr_info: [{ local: '192.0.2.1', prefixlen: 24 }] }])
  await ensureClusterNetwork(deps, state)
  assert.deepEqual(changes, [
    '-batch -',
    'link add skiff-0007 type bridge',
    'addr add 10.88.7.1/24 dev skiff-0007',
    'link set skiff-0007 up',
    'link set dev skiff-0007 alias skiff cluster=a pods=10.245.0.0/16 services=10.97.0.0/16',
    'netns del skiff-0007-api',
    'netns add skiff-0007-api',
    '-batch -',
    'link add sk0007api type veth peer name eth0 netns skiff-0007-api',
    'link set sk0007api master skiff-0007 up',
    '-n skiff-0007-api -batch -',
    'link set lo up',
    'addr add 10.88.7.2/24 dev eth0',
    'link set eth0 up',
  ])
})

test('NET-08 with both families the bridge and each namespace have an address of each', async () => {
  const { deps, changes } = hostWith([])
  const network = { bridge: 'skiff-0007', prefix: '10.88.7', prefixIpv6: 'fd53:4b00:7:1' }
  await ensureClusterNetwork(deps, { ...state, network })
  await ensureNodeNetwork(deps.exec, network, nodeNetwork(network, '0007', 6))
  assert.deepEqual(
    changes.filter((line) => /^addr|route/.test(line)),
    [
      'addr add 10.88.7.1/24 dev skiff-0007',
      'addr add fd53:4b00:7:1::1/64 dev skiff-0007 nodad',
      'addr add 10.88.7.2/24 dev eth0',
      'addr add fd53:4b00:7:1::2/64 dev eth0 nodad',
      'addr add 10.88.7.16/24 dev eth0',
      'addr add fd53:4b00:7:1::10/64 dev eth0 nodad',
      'route add default via 10.88.7.1',
      'route add default via fd53:4b00:7:1::1',
    ],
  )
})

test('NET-01 up refuses a cluster whose nodes’ range the host has come to use, and makes nothing', async () => {
  const { deps, changes } = hostWith([{ ifname: 'tun0', addr_info: [{ local: '10.88.7.99', prefixlen: 24 }] }])
  await assert.rejects(ensureClusterNetwork(deps, state), (error) => {
    assert.ok(error instanceof CommandError)
    assert.equal(error.exit, 'conflict')
    assert.match(error.message, /the nodes' range 10\.88\.7\.0\/24 of cluster "a" overlaps 10\.88\.7\.99\/24 of interface tun0/)
    return true
  })
  assert.deepEqual(changes, [])
})

test('NET-01 a cluster without real nodes has the usual ranges, or those that its user names', () => {
  const asked = { podCidr: undefined, serviceCidr: undefined, nodes: 3 }
  assert.deepEqual(rangesWithoutNetwork('0007', asked), { clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' })
  assert.deepEqual(rangesWithoutNetwork('0007', { ...asked, podCidr: '172.20.0.0/16' }), { clusterCidr: '172.20.0.0/16', serviceCidr: '10.96.0.0/16' })
  assert.throws(
    () => rangesWithoutNetwork('0007', { ...asked, podCidr: '172.20.0.0/24' }),
    (error) => error instanceof CommandError && error.exit === 'usage',
  )
})
