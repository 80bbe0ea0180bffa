/** The resolv.conf of pods by policy, and the events about truncation. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '#api/gen/types/core.v1'
import { podResolver } from './resolver.ts'

const pod = (spec: Partial<PodSpec>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'shop', uid: 'u1' },
  spec: { containers: [{ name: 'main' }], ...spec },
  status: {},
})

const resolver = {
  nodeIPs: ['10.0.0.7', 'fd00::7'],
  clusterDNS: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  resolvConf: 'nameserver 192.0.2.53\nsearch example.com corp\noptions edns0\noptions ndots:2 # comment\n',
}
const clusterSearches = ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'example.com', 'corp']
const hostDns = { servers: ['192.0.2.53'], searches: ['example.com', 'corp'], options: ['ndots:2'] }
const dnsCases = [
  { name: 'ClusterFirst', spec: {}, want: { servers: ['10.96.0.10'], searches: clusterSearches, options: ['ndots:5'] } },
  { name: 'Default', spec: { dnsPolicy: 'Default' }, want: hostDns },
  { name: 'ClusterFirst on the host network', spec: { hostNetwork: true }, want: hostDns },
  {
    name: 'ClusterFirstWithHostNet',
    spec: { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' },
    want: { servers: ['10.96.0.10'], searches: clusterSearches, options: ['ndots:5'] },
  },
  {
    name: 'None with a configuration',
    spec: { dnsPolicy: 'None', dnsConfig: { nameservers: ['1.1.1.1'], searches: ['x'], options: [{ name: 'ndots', value: '1' }, { name: 'edns0' }] } },
    want: { servers: ['1.1.1.1'], searches: ['x'], options: ['ndots:1', 'edns0'] },
  },
  {
    name: 'a configuration on top',
    spec: { dnsConfig: { nameservers: ['1.1.1.1'], options: [{ name: 'ndots', value: '1' }] } },
    want: { servers: ['10.96.0.10', '1.1.1.1'], searches: clusterSearches, options: ['ndots:1'] },
  },
]
for (const c of dnsCases) test(`KUB-20 resolver: ${c.name}`, () => assert.deepEqual(podResolver(pod(c.spec), resolver), { config: c.want, warnings: [] }))

const fallBack = 'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.'
test('KUB-20 resolver: without cluster DNS a pod uses the node’s resolver, with an event', () => {
  assert.deepEqual(podResolver(pod({}), { ...resolver, clusterDNS: [] }), {
    config: hostDns,
    warnings: [{ reason: 'MissingClusterDNS', message: `pod: "web-0_shop(u1)". ${fallBack}` }],
  })
})

test('KUB-20 resolver: a node without resolv.conf resolves nothing', () => {
  const { config } = podResolver(pod({ dnsPolicy: 'Default' }), { ...resolver, resolvConf: '' })
  assert.deepEqual(config, { servers: ['127.0.0.1', '::1'], searches: ['.'], options: [] })
})

test('KUB-20 resolver: entries beyond the limits are left out, with an event that has the applied ones', () => {
  const nameservers = ['1.1.1.1', '2.2.2.2', '3.3.3.3', '4.4.4.4']
  const searches = [`${'x'.repeat(254)}`, ...Array.from({ length: 40 }, (_, at) => `${at}.${'s'.repeat(80)}`)]
  const { config, warnings } = podResolver(pod({ dnsPolicy: 'None', dnsConfig: { nameservers, searches } }), resolver)
  assert.deepEqual(config.servers, nameservers.slice(0, 3))
  assert.deepEqual(config.searches, searches.slice(1, 25), 'neither the long one nor more than 2048 characters')
  assert.deepEqual(warnings, [
    {
      reason: 'DNSConfigForming',
      message: `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${config.servers.join(' ')}`,
    },
    {
      reason: 'DNSConfigForming',
      message: `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${config.searches.join(' ')}`,
    },
  ])
})
