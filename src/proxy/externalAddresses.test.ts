import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadBalancerIngress, ObjectReference, Service, ServiceSpec } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { EventRecorder } from '#client/eventRecorder'
import { renderTable } from '#host/nftables'
import { addressRule } from './externalAddresses.ts'
import { noteIgnoredAddresses } from './ignoredAddressEvents.ts'
import { buildModel, type FamilyModel } from './model.ts'
import { renderServices } from './modes/nftables.ts'

interface Subject {
  readonly name: string
  readonly clusterIp: string
  readonly externalIPs?: readonly string[]
  readonly ingress?: readonly LoadBalancerIngress[]
  readonly created?: string
  readonly port?: number
  readonly endpoint?: string | undefined
  readonly spec?: Partial<ServiceSpec>
  readonly annotations?: Record<string, string>
}

const range = '10.96.0.0/16'
const place = { nodeName: 'n1' }

function service({ name, clusterIp, externalIPs = [], ingress = [], created = '2026-01-01T00:00:00Z', port = 443, spec, annotations }: Subject): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'd', uid: name, creationTimestamp: created, ...(annotations ? { annotations } : {}) },
    spec: { type: 'ClusterIP', clusterIP: clusterIp, clusterIPs: [clusterIp], externalIPs: [...externalIPs], ports: [{ port, protocol: 'TCP' }], ...spec },
    status: { loadBalancer: { ingress: [...ingress] } },
  }
}

function slice({ name, endpoint }: Subject): EndpointSlice[] {
  if (endpoint === undefined) return []
  const metadata = { name: `${name}-x`, namespace: 'd', labels: { 'kubernetes.io/service-name': name } }
  return [
    { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4', endpoints: [{ addresses: [endpoint] }], ports: [{ port: 1 }] },
  ]
}

/** The nftables contents for these Services. */
function tableOf(subjects: readonly Subject[]) {
  const services = subjects.map(service)
  const sources = { services, slices: subjects.flatMap(slice), place, clusterCidrs: ['10.244.0.0/16'], serviceCidrs: [range] }
  return renderServices(buildModel(sources, ['IPv4'], addressRule(services, [range]))[0] as FamilyModel)
}

function owner(subjects: readonly Subject[], key: string): string | undefined {
  const { maps } = tableOf(subjects)
  return /\/(\w+)\/tcp/.exec(maps.get('service-ips')?.get(key) ?? '')?.[1]
}

const api: Subject = { name: 'kubernetes', clusterIp: '10.96.0.1', endpoint: '10.0.0.1' }
const claims: readonly (readonly [name: string, evil: Partial<Subject>])[] = [
  ['an external IP', { externalIPs: ['10.96.0.1'] }],
  ['an external IP of a Service without endpoints', { externalIPs: ['10.96.0.1'], endpoint: undefined }],
  ['a load balancer address', { ingress: [{ ip: '10.96.0.1' }] }],
  [
    'a load balancer address with source ranges',
    { ingress: [{ ip: '10.96.0.1' }], spec: { type: 'LoadBalancer', loadBalancerSourceRanges: ['192.0.2.1/32'] } },
  ],
  ['an external IP of an older Service', { externalIPs: ['10.96.0.1'], created: '2020-01-01T00:00:00Z' }],
  ['an external IP of a Service whose name sorts last', { name: 'zzz', externalIPs: ['10.96.0.1'] }],
  ['an external IP of a Service whose name sorts first', { name: 'aaa', externalIPs: ['10.96.0.1'] }],
]
for (const [name, evil] of claims) {
  test(`SVC-06 ${name} does not replace the same cluster IP of another Service`, () => {
    const subjects: Subject[] = [api, { name: 'evil', clusterIp: '10.96.0.66', endpoint: '10.0.0.66', ...evil }]
    for (const order of [subjects, [...subjects].reverse()]) {
      const key = '10.96.0.1 . tcp . 443'
      assert.equal(owner(order, key), 'kubernetes')
      const { maps } = tableOf(order)
      assert.equal(maps.get('no-endpoint-services')?.has(key), false)
      assert.equal(maps.get('firewall-ips')?.has(key), false)
    }
  })
}

const ignored: readonly (readonly [ip: string, reason: RegExp | undefined])[] = [
  ['10.96.0.1', /is the cluster IP of a Service/],
  ['10.96.77.1', /is in a range that cluster IPs come from/],
  ['10.112.0.1', /is the cluster IP of a Service/],
  ['127.0.0.1', /is a loopback, link-local or unspecified address/],
  ['169.254.169.254', /is a loopback, link-local or unspecified address/],
  ['10.96.0.01', /is no IP address/],
  ['1.2.3.4; flush ruleset', /is no IP address/],
  ['203.0.113.1', undefined],
]
for (const [ip, reason] of ignored) {
  test(`SVC-06 the external address ${ip} is ${reason ? 'ignored with an Event on its Service' : 'served, without an Event'}`, () => {
    // A cluster IP outside the ranges that the proxy knows of.
    const other: Subject = { name: 'other', clusterIp: '10.112.0.1', endpoint: '10.0.0.2' }
    const subject: Subject = { name: 'evil', clusterIp: '10.96.0.66', endpoint: '10.0.0.66', externalIPs: [ip], port: 80 }
    assert.equal(owner([api, other, subject], `${ip} . tcp . 80`), reason ? undefined : 'evil')
    const services = [api, other, subject].map(service)
    const events: string[] = []
    const recorder = {
      event: (about: ObjectReference | Service, ...said: string[]) => events.push(`${'metadata' in about ? about.metadata.name : ''}: ${said.join(' ')}`),
    }
    const note = noteIgnoredAddresses(recorder as unknown as EventRecorder)
    const rule = addressRule(services, [range])
    note(services, rule)
    note(services, rule)
    assert.equal(events.length, reason ? 1 : 0)
    if (reason)
      assert.match(events[0] ?? '', new RegExp(`^evil: Warning ExternalAddressIgnored .*spec.externalIPs: ${ip.replaceAll('.', '\\.')} ${reason.source}`))
  })
}

test('SVC-06 an Event about ignored addresses names five of them and is written again only when they change', () => {
  const events: string[] = []
  const recorder = { event: (_about: unknown, _type: string, _reason: string, message: string) => events.push(message) }
  const note = noteIgnoredAddresses(recorder as unknown as EventRecorder)
  const look = (count: number) => {
    const services = [service({ name: 'evil', clusterIp: '10.96.0.66', externalIPs: Array.from({ length: count }, (_, i) => `10.96.1.${i}`) })]
    note(services, addressRule(services, [range]))
  }
  for (const count of [200, 200, 0, 200, 201]) look(count)
  assert.equal(events.length, 3)
  assert.match(events[0] ?? '', /10\.96\.1\.4 is in a range that cluster IPs come from; and 195 more$/)
})

test('SVC-06 of two Services with one external address and port, the load balancer’s wins, then the older one, whatever the order', () => {
  const old: Subject = { name: 'old', clusterIp: '10.96.0.2', endpoint: '10.0.0.2', externalIPs: ['203.0.113.1'] }
  const young: Subject = { ...old, name: 'aaa', clusterIp: '10.96.0.3', created: '2026-02-01T00:00:00Z' }
  const balanced: Subject = { ...young, name: 'balanced', clusterIp: '10.96.0.4', externalIPs: [], ingress: [{ ip: '203.0.113.1' }] }
  const key = '203.0.113.1 . tcp . 443'
  for (const order of [
    [old, young],
    [young, old],
  ])
    assert.equal(owner(order, key), 'old')
  assert.equal(owner([old, young, balanced], key), 'balanced')
  assert.equal(owner([old, { ...young, port: 80 }], '203.0.113.1 . tcp . 80'), 'aaa')
})

test('SVC-03 source ranges of the annotation that are no ranges reach no rule: no client is let in', () => {
  const annotations = { 'service.beta.kubernetes.io/load-balancer-source-ranges': '192.0.2.0/24 accept\nflush ruleset\n#, 198.51.100.0/24' }
  const subject: Subject = { name: 'evil', clusterIp: '10.96.0.66', endpoint: '10.0.0.66', ingress: [{ ip: '203.0.113.1' }], annotations }
  const script = renderTable('ip kube-proxy', tableOf([api, { ...subject, spec: { type: 'LoadBalancer' } }]), undefined)
  assert.doesNotMatch(script, /flush ruleset|192\.0\.2/)
  assert.match(script, /ip saddr 198\.51\.100\.0\/24 return/)
})
