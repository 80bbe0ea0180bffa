import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exec } from '#host/exec'
import { bridgeAlias, rangesOfHost } from './hostRanges.ts'
import { type AskedRanges, chooseRanges, overlapping, RangeRefused, type TakenRange } from './ranges.ts'

const asked = (changes: Partial<AskedRanges> = {}): AskedRanges => ({ nodes: 2, ...changes })

test('NET-01 the only cluster of a host gets the usual ranges', () => {
  assert.deepEqual(chooseRanges('0007', asked(), []), { prefix: '10.88.7', clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' })
})

test('NET-08 a cluster with both families has a second range of each, in a /48 that carries its id', () => {
  const wanted = {
    prefix: '10.88.7',
    prefixIpv6: 'fd53:4b00:7:1',
    clusterCidr: '10.244.0.0/16,fd53:4b00:7:100::/56',
    serviceCidr: '10.96.0.0/16,fd53:4b00:7:2::/112',
  }
  assert.deepEqual(chooseRanges('0007', asked({ ipFamilies: 'ipv4,ipv6' }), []), wanted)
  assert.deepEqual(chooseRanges('0007', asked({ podCidr: '10.200.0.0/16,fd00:1::/56' }), []), { ...wanted, clusterCidr: '10.200.0.0/16,fd00:1::/56' })
  const named = { podCidr: '10.200.0.0/16, fd00:1::/56', serviceCidr: '10.201.0.0/16,fd00:2::/112' }
  const { clusterCidr, serviceCidr } = chooseRanges('0007', asked(named), [])
  assert.deepEqual([clusterCidr, serviceCidr], ['10.200.0.0/16,fd00:1::/56', '10.201.0.0/16,fd00:2::/112'])
})

test('NET-08 a range of IPv6 that another cluster uses is passed over', () => {
  const taken = [{ cidr: 'fd53:4b00:7::/48', by: 'a route through tun0' }]
  const { prefixIpv6, clusterCidr } = chooseRanges('0007', asked({ ipFamilies: 'ipv4,ipv6' }), taken)
  assert.deepEqual([prefixIpv6, clusterCidr], ['fd53:4b01:7:1', '10.244.0.0/16,fd53:4b01:7:100::/56'])
})

test('NET-08 a cluster of IPv6 alone has pods and services of it, and its nodes have addresses of IPv4 on their link, too', () => {
  const wanted = { prefix: '10.88.7', prefixIpv6: 'fd53:4b00:7:1', clusterCidr: 'fd53:4b00:7:100::/56', serviceCidr: 'fd53:4b00:7:2::/112' }
  assert.deepEqual(chooseRanges('0007', asked({ ipFamilies: 'ipv6' }), []), wanted)
  assert.deepEqual(chooseRanges('0007', asked({ podCidr: 'fd00:1::/56' }), []), { ...wanted, clusterCidr: 'fd00:1::/56' })
  assert.deepEqual(chooseRanges('0007', asked({ serviceCidr: 'fd00:2::/112' }), []), { ...wanted, serviceCidr: 'fd00:2::/112' })
})

test('NET-01 a hundred clusters of one host have ranges that do not overlap', () => {
  const taken: TakenRange[] = [{ cidr: '10.244.8.0/24', by: 'interface eth0' }]
  for (let i = 0; i < 100; i++) {
    const { prefix, clusterCidr, serviceCidr } = chooseRanges('0007', asked(), taken)
    for (const cidr of [`${prefix}.0/24`, clusterCidr, serviceCidr]) {
      assert.equal(overlapping(cidr, taken), undefined, cidr)
      taken.push({ cidr, by: `cluster ${i}` })
    }
  }
})

test('NET-01 a host that routes all of 10.0.0.0/8 leaves other private ranges', () => {
  const taken = [{ cidr: '10.0.0.0/8', by: 'a route through tun0' }]
  const { prefix, clusterCidr, serviceCidr } = chooseRanges('0007', asked(), taken)
  assert.deepEqual([prefix, clusterCidr, serviceCidr], ['192.168.255', '100.64.0.0/16', '100.96.0.0/16'])
})

const refused: readonly { name: string; asked: Partial<AskedRanges>; taken?: TakenRange[]; message: RegExp; isClash: boolean }[] = [
  {
    name: 'a range inside that of an interface',
    asked: { podCidr: '192.0.2.0/24', nodes: 1 },
    taken: [{ cidr: '192.0.0.0/16', by: 'interface eth0' }],
    message: /^--pod-cidr 192\.0\.2\.0\/24 overlaps 192\.0\.0\.0\/16 of interface eth0$/,
    isClash: true,
  },
  {
    name: 'a range around that of another cluster',
    asked: { serviceCidr: '10.96.0.0/12' },
    taken: [{ cidr: '10.97.0.0/16', by: 'the services of cluster "a"' }],
    message: /^--service-cidr 10\.96\.0\.0\/12 overlaps 10\.97\.0\.0\/16 of the services of cluster "a"$/,
    isClash: true,
  },
  { name: 'text that is not a range', asked: { podCidr: '10.0.0.0' }, message: /expected a range of IPv4 or IPv6 addresses/, isClash: false },
  { name: 'two ranges of IPv4', asked: { podCidr: '10.1.0.0/16,10.2.0.0/16' }, message: /expected a range of IPv4 or IPv6 addresses/, isClash: false },
  {
    name: 'one range of Services where pods have two families',
    asked: { podCidr: '10.1.0.0/16,fd00:1::/56', serviceCidr: '10.2.0.0/16' },
    message: /^--service-cidr 10\.2\.0\.0\/16: this cluster has both address families/,
    isClash: false,
  },
  { name: 'a large range of Services of IPv6', asked: { serviceCidr: '10.2.0.0/16,fd00:2::/64' }, message: /from \/108 to \/124/, isClash: false },
  { name: 'a pod range of IPv6 without room', asked: { podCidr: '10.1.0.0/16,fd00:1::/64' }, message: /gets a \/64, and the range holds 1/, isClash: false },
  {
    name: 'a range of IPv6 that an interface has',
    asked: { podCidr: '10.1.0.0/16,fd00:1::/56' },
    taken: [{ cidr: 'fd00:1::1/64', by: 'interface eth0' }],
    message: /^--pod-cidr fd00:1::\/56 overlaps fd00:1::1\/64 of interface eth0$/,
    isClash: true,
  },
  {
    name: 'a range of IPv6 before one of IPv4',
    asked: { podCidr: 'fd00::/48,10.1.0.0/16' },
    message: /expected a range of IPv4 or IPv6 addresses/,
    isClash: false,
  },
  {
    name: 'a range of IPv4 for services where pods have IPv6',
    asked: { podCidr: 'fd00::/48', serviceCidr: '10.1.0.0/16' },
    message: /^--service-cidr 10\.1\.0\.0\/16: this cluster has IPv6 alone; name a range such as fd00:/,
    isClash: false,
  },
  {
    name: 'a range of IPv6 where IPv4 alone is asked for',
    asked: { podCidr: 'fd00::/48', ipFamilies: 'ipv4' },
    message: /^--pod-cidr fd00::\/48: this cluster has IPv4 alone; name a range such as 10\./,
    isClash: false,
  },
  {
    name: 'a range of IPv4 where both families are asked for',
    asked: { podCidr: '10.1.0.0/16', ipFamilies: 'ipv4,ipv6' },
    message: /^--pod-cidr 10\.1\.0\.0\/16: this cluster has both address families; name a range of each/,
    isClash: false,
  },
  { name: 'a range with host bits', asked: { podCidr: '10.1.2.0/16' }, message: /the range is written 10\.1\.0\.0\/16/, isClash: false },
  { name: 'a pod range without room for its nodes', asked: { podCidr: '10.1.2.0/24', nodes: 2 }, message: /holds 1 of them/, isClash: false },
  { name: 'a pod range smaller than one node’s', asked: { podCidr: '10.1.2.0/25', nodes: 0 }, message: /holds 0 of them/, isClash: false },
  { name: 'a service range that is too small', asked: { serviceCidr: '10.1.2.0/29' }, message: /from \/12 to \/28/, isClash: false },
  { name: 'pods and services that overlap', asked: { podCidr: '10.1.0.0/16', serviceCidr: '10.1.2.0/24' }, message: /overlap$/, isClash: false },
]
for (const one of refused) {
  test(`NET-01 ${one.name} is refused`, () => {
    assert.throws(
      () => chooseRanges('0007', asked(one.asked), one.taken ?? []),
      (error) => error instanceof RangeRefused && one.message.test(error.message) && error.isClash === one.isClash,
    )
  })
}

for (const [nodes, wanted] of [
  [256, '10.244.0.0/16'],
  [257, '10.128.0.0/15'],
  [2_000, '10.128.0.0/13'],
  [10_000, '10.128.0.0/10'],
] as const)
  test(`ARC-13 NET-01 the range of pods of a cluster with ${nodes} nodes has a block for each, and none of services`, () => {
    const { clusterCidr, serviceCidr } = chooseRanges('0000', asked({ nodes }), [])
    assert.equal(clusterCidr, wanted)
    assert.equal(overlapping(clusterCidr, [{ cidr: serviceCidr, by: '' }]), undefined)
  })

test('NET-01 a named pod range keeps the chosen service range out of it', () => {
  assert.deepEqual(chooseRanges('0007', asked({ podCidr: '10.96.0.0/16' }), []).serviceCidr, '10.97.0.0/16')
})

test('NET-01 the ranges of a host are those of interfaces, routes and other clusters, and not its default route or its own cluster', async () => {
  const shown: Record<string, unknown> = {
    addr: [
      { ifname: 'lo', addr_info: [{ local: '127.0.0.1', prefixlen: 8 }] },
      { ifname: 'skiff-0001', addr_info: [{ local: '10.88.1.1', prefixlen: 24 }] },
      { ifname: 'skiff-0002', addr_info: [{ local: '10.88.2.1', prefixlen: 24 }] },
    ],
    link: [
      { ifname: 'skiff-0001', ifalias: bridgeAlias('own', { clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' }) },
      { ifname: 'skiff-0002', ifalias: bridgeAlias('other', { clusterCidr: '10.245.0.0/16', serviceCidr: '10.97.0.0/16' }) },
      { ifname: 'docker0' },
      { ifname: 'skiff-0003', ifalias: bridgeAlias('both', { clusterCidr: '10.246.0.0/16,fd00:1::/56', serviceCidr: '10.98.0.0/16,fd00:2::/112' }) },
    ],
    route: [
      { dst: 'default', dev: 'eth0' },
      { dst: '10.88.1.0/24', dev: 'skiff-0001' },
      { dst: '198.51.100.7', dev: 'tun0' },
      { type: 'local', dst: '192.0.2.2', dev: 'eth0' },
      { type: 'blackhole', dst: '203.0.113.0/24' },
    ],
  }
  const exec = {
    run: async (_command: string, args: readonly string[]) => {
      if (args.includes('-6')) return { code: 0, stdout: '[{"dst":"fd00:9::1","dev":"eth0"}]', stderr: '', timedOut: false }
      const [what = ''] = args.filter((word) => Object.hasOwn(shown, word))
      return { code: 0, stdout: JSON.stringify(shown[what]), stderr: '', timedOut: false }
    },
  } as unknown as Exec
  assert.deepEqual(await rangesOfHost(exec, 'skiff-0001'), [
    { cidr: '10.245.0.0/16', by: 'the pods of cluster "other"' },
    { cidr: '10.97.0.0/16', by: 'the services of cluster "other"' },
    { cidr: '10.246.0.0/16', by: 'the pods of cluster "both"' },
    { cidr: 'fd00:1::/56', by: 'the pods of cluster "both"' },
    { cidr: '10.98.0.0/16', by: 'the services of cluster "both"' },
    { cidr: 'fd00:2::/112', by: 'the services of cluster "both"' },
    { cidr: '127.0.0.1/8', by: 'interface lo' },
    { cidr: '10.88.2.1/24', by: 'interface skiff-0002' },
    { cidr: '198.51.100.7/32', by: 'a route through tun0' },
    { cidr: '203.0.113.0/24', by: 'a route' },
    { cidr: 'fd00:9::1/128', by: 'a route through eth0' },
  ])
})
