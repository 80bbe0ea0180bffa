import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exec } from '#host/exec'
import { addressesOf, type ClusterNetwork, ensureBridgeAddress, gatewaysOf, nodeNetwork, serverAddressOf, serverUrlOf } from './clusterNetwork.ts'

const ipv4: ClusterNetwork = { bridge: 'skiff-0007', prefix: '10.88.7' }
const dual: ClusterNetwork = { ...ipv4, prefixIpv6: 'fd53:4b00:7:1' }

for (const { name, network, url, gateways, server, node } of [
  { name: 'IPv4', network: ipv4, url: 'https://10.88.7.1:6443', gateways: ['10.88.7.1'], server: '10.88.7.4', node: ['10.88.7.11'] },
  {
    name: 'both families',
    network: dual,
    url: 'https://10.88.7.1:6443',
    gateways: ['10.88.7.1', 'fd53:4b00:7:1::1'],
    server: '10.88.7.4',
    node: ['10.88.7.11', 'fd53:4b00:7:1::b'],
  },
  {
    name: 'IPv6 alone',
    network: { ...dual, isIpv6Only: true },
    url: 'https://[fd53:4b00:7:1::1]:6443',
    gateways: ['fd53:4b00:7:1::1'],
    server: 'fd53:4b00:7:1::4',
    node: ['fd53:4b00:7:1::b'],
  },
]) {
  test(`NET-08 nodes, servers and the host have addresses of the families of a cluster of ${name}`, () => {
    assert.equal(serverUrlOf(network, 6443), url)
    assert.deepEqual(gatewaysOf(network), gateways)
    assert.equal(serverAddressOf(network, 1), server)
    assert.deepEqual(addressesOf(nodeNetwork(network, '0007', 1)), node)
    // The link of a node is the same in each.
    assert.equal(nodeNetwork(network, '0007', 1).address, '10.88.7.11')
  })
}

test('NET-08 an address of a server is added to the bridge with the length of its family', async () => {
  const commands: string[] = []
  const exec = {
    run: async (_program: string, args: readonly string[]) => {
      commands.push(args.join(' '))
      return { code: 0, stdout: '', stderr: '', timedOut: false }
    },
  } as unknown as Exec
  for (const address of ['10.88.7.4', 'fd53:4b00:7:1::4']) await ensureBridgeAddress(exec, dual, address)
  assert.deepEqual(commands, ['addr replace 10.88.7.4/24 dev skiff-0007', 'addr replace fd53:4b00:7:1::4/64 dev skiff-0007 nodad'])
})
