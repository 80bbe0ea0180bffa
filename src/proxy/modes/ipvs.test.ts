/** The mode ipvs as text: no kernel is asked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exec } from '#host/exec'
import type { FamilyModel, ServiceRule } from '../model.ts'
import { parseServers, renderIpvs, serverChanges, setCommands } from './ipvs/render.ts'
import { ipvs } from './ipvs.ts'

const endpoints = [
  { ip: '10.244.0.1', port: 8080, isLocal: true },
  { ip: '10.244.1.2', port: 8080, isLocal: false },
]
const rule = (changes: Partial<ServiceRule> = {}): ServiceRule => ({
  service: 'default/web',
  portName: 'http',
  protocol: 'tcp',
  clusterIp: '10.96.0.10',
  port: 80,
  nodePort: undefined,
  externalIps: [],
  loadBalancerIps: [],
  sourceRanges: undefined,
  affinitySeconds: undefined,
  internalPolicyLocal: false,
  externalPolicyLocal: false,
  clusterEndpoints: endpoints,
  localEndpoints: endpoints.slice(0, 1),
  ...changes,
})
const model = (rules: readonly ServiceRule[]): FamilyModel => ({ family: 'IPv4', rules, clusterCidrs: ['10.244.0.0/16'], serviceCidrs: ['10.96.0.0/16'] })
const both = ['10.244.0.1:8080 --masquerading --weight 1', '10.244.1.2:8080 --masquerading --weight 1']

test('SVC-07 ipvs has a virtual server with round robin for the cluster IP, the load balancer and the node port, and their addresses on its interface', () => {
  const balanced = rule({
    nodePort: 30_080,
    externalIps: ['203.0.113.9'],
    loadBalancerIps: ['203.0.113.9'],
    sourceRanges: ['192.0.2.0/24'],
    externalPolicyLocal: true,
    affinitySeconds: 600,
  })
  const { servers, sets, addresses } = renderIpvs(model([balanced]))
  assert.deepEqual(
    [...servers],
    [
      ['--tcp-service 10.96.0.10:80 --scheduler rr --persistent 600', both],
      ['--tcp-service 203.0.113.9:80 --scheduler rr --persistent 600', both.slice(0, 1)],
      ['--tcp-service 0.0.0.0:30080 --scheduler rr --persistent 600', both.slice(0, 1)],
    ],
  )
  assert.deepEqual(addresses, ['10.96.0.10', '203.0.113.9'])
  assert.deepEqual(Object.fromEntries([...sets].filter(([, entries]) => entries.length > 0)), {
    'KUBE-LOOP-BACK': ['10.244.0.1,tcp:8080,10.244.0.1'],
    'KUBE-CLUSTER-IP': ['10.96.0.10,tcp:80'],
    'KUBE-EXTERNAL-IP-LOCAL': ['203.0.113.9,tcp:80'],
    'KUBE-LOAD-BALANCER-FW': ['203.0.113.9,tcp:80'],
    'KUBE-LOAD-BALANCER-SOURCE-CIDR': ['203.0.113.9,tcp:80,192.0.2.0/24'],
    'KUBE-NODE-PORT-LOCAL-TCP': ['30080'],
  })
})

test('SVC-07 ipvs writes brackets, sets of inet6 and their own names for IPv6', () => {
  const six = { ...model([rule({ clusterIp: 'fd02::10', clusterEndpoints: [{ ip: 'fd01::1', port: 8080, isLocal: false }] })]), family: 'IPv6' as const }
  const { servers, sets, chains } = renderIpvs(six)
  assert.deepEqual([...servers], [['--tcp-service [fd02::10]:80 --scheduler rr', ['[fd01::1]:8080 --masquerading --weight 1']]])
  assert.ok(setCommands('IPv6', sets).includes('create KUBE-6-CLUSTER-IP hash:ip,port family inet6 maxelem 1048576'))
  assert.ok(chains.get('nat')?.get('KUBE-POSTROUTING')?.[0]?.includes('--match-set KUBE-6-LOOP-BACK dst,dst,src'))
})

test('SVC-07 ipvs fills a new set and swaps it with the old one', () => {
  const { sets } = renderIpvs(model([rule()]))
  assert.deepEqual(setCommands('IPv4', new Map([['KUBE-CLUSTER-IP' as const, sets.get('KUBE-CLUSTER-IP') ?? []]])), [
    'create KUBE-CLUSTER-IP hash:ip,port maxelem 1048576',
    'create KUBE-NEXT hash:ip,port maxelem 1048576',
    'add KUBE-NEXT 10.96.0.10,tcp:80',
    'swap KUBE-NEXT KUBE-CLUSTER-IP',
    'destroy KUBE-NEXT',
  ])
  // ipset takes no longer names.
  for (const line of setCommands('IPv6', sets)) assert.ok((line.split(' ')[1] ?? '').length <= 31, line)
})

test('SVC-07 ipvs stores a source range of all addresses as two halves, because a set of the kernel takes none of length 0', () => {
  const open = rule({ loadBalancerIps: ['203.0.113.9'], sourceRanges: ['0.0.0.0/0', '192.0.2.0/24'] })
  assert.deepEqual(
    renderIpvs(model([open])).sets.get('KUBE-LOAD-BALANCER-SOURCE-CIDR'),
    ['0.0.0.0/1', '128.0.0.0/1', '192.0.2.0/24'].map((range) => `203.0.113.9,tcp:80,${range}`),
  )
})

const saved = `-A -t 10.96.0.10:80 -s rr
-a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1
-a -t 10.96.0.10:80 -r 10.244.9.9:8080 -m -w 1
-A -u 10.96.0.99:53 -s rr -p 10800
-A -t [fd02::10]:80 -s rr
`

test('SVC-07 ipvs sends only what differs from what ipvsadm shows, of its own family', () => {
  const before = parseServers(saved, 'IPv4')
  const { servers } = renderIpvs(model([rule()]))
  assert.deepEqual(serverChanges(before, servers), [
    '--add-server --tcp-service 10.96.0.10:80 --real-server 10.244.1.2:8080 --masquerading --weight 1',
    '--delete-server --tcp-service 10.96.0.10:80 --real-server 10.244.9.9:8080',
    '--delete-service --udp-service 10.96.0.99:53',
  ])
  assert.deepEqual(serverChanges(servers, servers), [])
  const sticky = renderIpvs(model([rule({ affinitySeconds: 5 })])).servers
  assert.deepEqual(serverChanges(servers, sticky), ['--edit-service --tcp-service 10.96.0.10:80 --scheduler rr --persistent 5'])
})

test('SVC-07 ipvs is refused with the kernel’s reason, or the package that is missing', async () => {
  const hostWith = (codes: Readonly<Record<string, number>>, stderr = '') =>
    ({ run: async (command: string) => ({ code: codes[command] ?? 0, stdout: '', stderr, timedOut: false }) }) as unknown as Exec
  assert.match((await ipvs.obstacle(hostWith({ ipvsadm: -1 }), 'IPv4')) ?? '', /^ipvsadm is not installed/)
  const reason = "Can't initialize ipvs: Protocol not available"
  assert.equal(
    await ipvs.obstacle(hostWith({ ipvsadm: 2 }, `${reason}\n`), 'IPv4'),
    `the kernel has no IPVS, which upstream deprecates: ${reason}; modprobe ip_vs loads it where it is a module`,
  )
  assert.match((await ipvs.obstacle(hostWith({ ipset: -1 }), 'IPv4')) ?? '', /^ipset is not installed/)
  assert.equal(await ipvs.obstacle(hostWith({}), 'IPv4'), undefined)
})
