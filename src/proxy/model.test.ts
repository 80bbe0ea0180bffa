import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { renderTable } from '#host/nftables'
import { buildModel, EarlierRules, type Family, type FamilyModel, type ServiceRule } from './model.ts'
import { renderServices, renderSteps } from './modes/nftables.ts'
import { staleFlows } from './staleFlows.ts'
import type { NodePlace } from './topology.ts'

function service(spec: Partial<ServiceSpec>, name = 'web'): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'd' },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports: [{ name: 'http', port: 80, protocol: 'TCP' }], ...spec },
    status: { loadBalancer: {} },
  }
}

function slice(endpoints: Endpoint[], port = 8080, name = 'web', protocol = 'TCP'): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-x`, namespace: 'd', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints,
    ports: [{ name: 'http', port, protocol }],
  }
}

const here = { nodeName: 'n1', zone: 'a' }
const ready = (ip: string, nodeName: string): Endpoint => ({ addresses: [ip], nodeName, conditions: { ready: true } })
const ending = (ip: string): Endpoint => ({ addresses: [ip], nodeName: 'n1', conditions: { ready: false, serving: true, terminating: true } })
const notReady = (ip: string): Endpoint => ({ addresses: [ip], nodeName: 'n1', conditions: { ready: false, serving: false } })
function familyModel(services: Service[], slices: EndpointSlice[], family: Family = 'IPv4', place: NodePlace = here): FamilyModel {
  const ranges = { clusterCidrs: ['10.244.0.0/16', 'fd01::/48'], serviceCidrs: ['10.96.0.0/16', 'fd02::/112'] }
  return buildModel({ services, slices, place, ...ranges }, [family])[0] as FamilyModel
}

const model = (spec: Partial<ServiceSpec>, endpoints: Endpoint[]) => familyModel([service(spec)], [slice(endpoints)]).rules
const ips = (rules: readonly ServiceRule[]) => rules[0]?.clusterEndpoints.map((endpoint) => endpoint.ip)

test('SVC-13 only ready endpoints are used', () => {
  assert.deepEqual(ips(model({}, [ready('10.0.0.1', 'n1'), notReady('10.0.0.2'), ending('10.0.0.3')])), ['10.0.0.1'])
})

test('SVC-13 without a ready endpoint, endpoints that serve while they terminate are used', () => {
  assert.deepEqual(ips(model({}, [notReady('10.0.0.2'), ending('10.0.0.3')])), ['10.0.0.3'])
})

const near = (ip: string, forZones: string[], forNodes: string[] = []): Endpoint => {
  const named = (names: string[]) => names.map((name) => ({ name }))
  return {
    ...ready(ip, 'n2'),
    hints: { ...(forZones.length > 0 ? { forZones: named(forZones) } : {}), ...(forNodes.length > 0 ? { forNodes: named(forNodes) } : {}) },
  }
}
for (const { name, endpoints, want } of [
  { name: 'those for this zone', endpoints: [near('10.0.0.1', ['a']), near('10.0.0.2', ['b'])], want: ['10.0.0.1'] },
  { name: 'one for several zones', endpoints: [near('10.0.0.1', ['a', 'b']), near('10.0.0.2', ['b'])], want: ['10.0.0.1'] },
  { name: 'all, when one says nothing', endpoints: [near('10.0.0.1', ['a']), ready('10.0.0.2', 'n2')], want: ['10.0.0.1', '10.0.0.2'] },
  { name: 'all, when none is for this zone', endpoints: [near('10.0.0.1', ['c']), near('10.0.0.2', ['b'])], want: ['10.0.0.1', '10.0.0.2'] },
  { name: 'those for this node before those for its zone', endpoints: [near('10.0.0.1', ['a'], ['n3']), near('10.0.0.2', ['a'], ['n1'])], want: ['10.0.0.2'] },
  { name: 'those for the zone, when none is for this node', endpoints: [near('10.0.0.1', ['a'], ['n3']), near('10.0.0.2', ['b'], ['n2'])], want: ['10.0.0.1'] },
  { name: 'what hints say of those that are not ready does not count', endpoints: [near('10.0.0.1', ['b']), ending('10.0.0.3')], want: ['10.0.0.1'] },
]) {
  test(`SVC-11 of endpoints with hints: ${name}`, () => assert.deepEqual(ips(model({}, endpoints)), want))
}

test('SVC-11 a node without a zone takes all; traffic that must stay on its node does not go by hints', () => {
  const endpoints = [near('10.0.0.1', ['b']), { ...near('10.0.0.2', ['a']), nodeName: 'n1' }]
  const of = (place: NodePlace) => familyModel([service({})], [slice(endpoints)], 'IPv4', place).rules[0]
  assert.equal(of({ nodeName: 'n1' })?.clusterEndpoints.length, 2)
  const elsewhere = of({ nodeName: 'n1', zone: 'b' })
  assert.deepEqual([elsewhere?.clusterEndpoints[0]?.ip, elsewhere?.localEndpoints[0]?.ip], ['10.0.0.1', '10.0.0.2'])
})

test('SVC-04 headless and ExternalName services need no rules', () => {
  assert.deepEqual(model({ clusterIP: 'None', clusterIPs: ['None'] }, []), [])
  assert.deepEqual(model({ type: 'ExternalName', clusterIP: '', clusterIPs: [] }, []), [])
})

test('SVC-10 affinity and local policies are kept', () => {
  const [rule] = model(
    { type: 'NodePort', sessionAffinity: 'ClientIP', externalTrafficPolicy: 'Local', ports: [{ name: 'http', port: 80, nodePort: 30080 }] },
    [ready('10.0.0.1', 'n1'), ready('10.0.1.1', 'n2')],
  )
  assert.equal(rule?.affinitySeconds, 10_800)
  assert.equal(rule?.externalPolicyLocal, true)
  assert.deepEqual(rule?.localEndpoints, [{ ip: '10.0.0.1', port: 8080, isLocal: true }])
  assert.equal(rule?.clusterEndpoints.length, 2)
})

test('SVC-03 a load balancer’s addresses lead to the service, for clients in its source ranges', () => {
  const spec = { type: 'LoadBalancer', externalIPs: ['198.51.100.1'], loadBalancerSourceRanges: ['192.0.2.0/24', '2001:db8::/32'] }
  const balanced = {
    ...service(spec),
    status: {
      loadBalancer: {
        ingress: [
          { ip: '203.0.113.1', ipMode: 'VIP' },
          { ip: '203.0.113.2', ipMode: 'Proxy' },
        ],
      },
    },
  }
  const ruleIn = (family: 'IPv4' | 'IPv6') =>
    familyModel([{ ...balanced, spec: { ...balanced.spec, clusterIPs: ['10.96.0.10', '2001:db8::10'] } }], [], family).rules[0]
  const four = ruleIn('IPv4')
  assert.deepEqual([four?.externalIps, four?.loadBalancerIps, four?.sourceRanges], [['198.51.100.1', '203.0.113.1'], ['203.0.113.1'], ['192.0.2.0/24']])
  assert.deepEqual(ruleIn('IPv6')?.sourceRanges, ['2001:db8::/32'])
  assert.equal(model({ type: 'LoadBalancer' }, [])[0]?.sourceRanges, undefined)
})

test('SVC-06 an unchanged model writes nothing, one more endpoint touches only its service', () => {
  const many = Array.from({ length: 50 }, (_, i) => service({ clusterIP: `10.96.1.${i}`, clusterIPs: [`10.96.1.${i}`] }, `s${i}`))
  const slices = many.map((_, i) => slice([ready(`10.0.0.${i}`, 'n1')], 8080, `s${i}`))
  const before = renderServices(familyModel(many, slices))
  assert.equal(renderTable('ip kube-proxy', before, before), '')
  slices[7] = slice([ready('10.0.0.7', 'n1'), ready('10.0.9.9', 'n2')], 8080, 's7')
  const after = renderServices(familyModel(many, slices))
  const script = renderTable('ip kube-proxy', after, before)
  assert.ok(
    script.split('\n').every((line) => line === '' || line.includes('d/s7/tcp/http')),
    script,
  )
  assert.match(script, /numgen random mod 2 vmap/)
})

test('SVC-06 one changed Service makes new rules for itself alone, and its rules alone are rendered again', () => {
  const many = Array.from({ length: 50 }, (_, i) => service({ clusterIP: `10.96.1.${i}`, clusterIPs: [`10.96.1.${i}`] }, `s${i}`))
  const slices = many.map((_, i) => slice([ready(`10.0.0.${i}`, 'n1')], 8080, `s${i}`))
  const earlier = new EarlierRules()
  const next = () => {
    const sources = { services: many, slices, place: { nodeName: 'n1' }, clusterCidrs: ['10.0.0.0/16'], serviceCidrs: ['10.96.0.0/16'] }
    return buildModel(sources, ['IPv4'], undefined, earlier)[0] as FamilyModel
  }
  const rendered = { IPv4: new WeakMap(), IPv6: new WeakMap() }
  let steps = 0
  const render = (one: FamilyModel) => {
    const work = renderSteps(one, rendered)
    for (let step = work.next(); ; step = work.next()) {
      if (step.done) return step.value
      steps++
    }
  }
  const first = next()
  const before = render(first)
  // Between two Services the work can wait for other turns.
  assert.equal(steps, 50)
  slices[7] = slice([ready('10.0.9.9', 'n2')], 8080, 's7')
  const second = next()
  assert.deepEqual(
    second.rules.filter((rule, i) => rule !== first.rules[i]).map((rule) => rule.service),
    ['d/s7'],
  )
  const after = render(second)
  const changed = [...after.chains].filter(([name, lines]) => before.chains.get(name) !== lines).map(([name]) => name)
  assert.ok(changed.length > 0 && changed.every((name) => name.includes('d/s7/')), changed.join())
  assert.deepEqual(after, renderServices(second))
})

test('SVC-06 a Service whose external address another one takes over gets new rules', () => {
  const earlier = new EarlierRules()
  const withExternal = service({ externalIPs: ['198.51.100.9'] }, 'a')
  const rulesWith = (services: Service[]) =>
    buildModel({ services, slices: [], place: { nodeName: 'n1' }, clusterCidrs: [], serviceCidrs: [] }, ['IPv4'], undefined, earlier)[0]?.rules
  assert.deepEqual(rulesWith([withExternal])?.[0]?.externalIps, ['198.51.100.9'])
  const owner = service({ clusterIP: '198.51.100.9', clusterIPs: ['198.51.100.9'] }, 'b')
  assert.deepEqual(rulesWith([withExternal, owner])?.[0]?.externalIps, [])
})

test('SVC-06 a service that loses its last endpoint is refused instead of balanced', () => {
  const before = renderServices(familyModel([service({})], [slice([ready('10.0.0.1', 'n1')])]))
  const after = renderServices(familyModel([service({})], [slice([])]))
  const script = renderTable('ip kube-proxy', after, before)
  assert.match(script, /delete element ip kube-proxy service-ips { 10\.96\.0\.10 \. tcp \. 80 }/)
  assert.match(script, /add element ip kube-proxy no-endpoint-services { 10\.96\.0\.10 \. tcp \. 80 : goto reject-chain }/)
  assert.match(script, /delete chain ip kube-proxy service-/)
})

test('SVC-13 UDP flows to a removed endpoint are deleted, and so are flows that were rejected before the first endpoint', () => {
  const udp = (endpoints: Endpoint[], port = 53) =>
    familyModel([service({ ports: [{ name: 'http', port: 53, protocol: 'UDP', nodePort: 30053 }], type: 'NodePort' })], [slice(endpoints, port, 'web', 'UDP')])
      .rules
  const [one, two] = [ready('10.0.0.1', 'n1'), ready('10.0.0.2', 'n1')]
  const frontends = [
    { protocol: 'udp', origDst: '10.96.0.10', origPortDst: 53 },
    { protocol: 'udp', origPortDst: 30053 },
  ]
  const to = (dstNat: string, replyPortSrc: number) => frontends.map((frontend) => ({ ...frontend, dstNat, replyPortSrc }))
  assert.deepEqual(staleFlows(udp([one, two]), udp([two])), to('10.0.0.1', 53))
  assert.deepEqual(staleFlows(udp([one]), udp([one], 5353)), to('10.0.0.1', 53))
  assert.deepEqual(staleFlows(udp([one]), udp([])), to('10.0.0.1', 53))
  assert.deepEqual(staleFlows(udp([]), udp([two])), frontends)
  assert.deepEqual(staleFlows(udp([one]), udp([one])), [])
})

test('SVC-13 TCP connections that nothing has answered are deleted when no Service has the endpoint any more', () => {
  const tcp = (...names: (readonly [string, Endpoint[]])[]) =>
    familyModel(
      names.map(([name]) => service({}, name)),
      names.map(([name, endpoints]) => slice(endpoints, 8080, name)),
    ).rules
  const [one, two] = [ready('10.0.0.1', 'n1'), ready('10.0.0.2', 'n1')]
  const unanswered = [{ protocol: 'tcp', state: 'SYN_SENT', dstNat: '10.0.0.1' }]
  assert.deepEqual(staleFlows(tcp(['a', [one, two]]), tcp(['a', [two]])), unanswered)
  assert.deepEqual(staleFlows(tcp(['a', [one, two]], ['b', [one]]), tcp(['a', [two]], ['b', [one]])), [])
  assert.deepEqual(staleFlows(tcp(['a', [one]], ['b', [one]]), tcp(['a', []], ['b', []])), unanswered)
  assert.deepEqual(staleFlows(tcp(['a', [one]]), []), unanswered)
  const many = Array.from({ length: 200 }, (_, i) => ready(`10.0.1.${i}`, 'n1'))
  assert.deepEqual(staleFlows(tcp(['a', many]), tcp(['a', []])), [{ protocol: 'tcp', state: 'SYN_SENT', isIpv6: false, dstNat: 'any' }])
})

const manyUdp = (count: number, endpointsOf: (i: number) => Endpoint[], portOf: (i: number) => number = () => 53) => {
  const numbers = Array.from({ length: count }, (_, i) => i)
  return familyModel(
    numbers.map((i) => service({ clusterIP: `10.96.${i >> 8}.${i & 255}`, ports: [{ name: 'http', port: portOf(i), protocol: 'UDP' }] }, `s${i}`)),
    numbers.map((i) => slice(endpointsOf(i), 53, `s${i}`, 'UDP')),
  ).rules
}
const widened = [
  {
    name: 'removed endpoints at few addresses, by the addresses',
    before: manyUdp(300, () => [ready('10.0.0.1', 'n1')]),
    after: manyUdp(300, () => []),
    want: [{ protocol: 'udp', dstNat: '10.0.0.1' }],
  },
  {
    name: 'removed endpoints at many addresses, by one filter',
    before: manyUdp(3000, (i) => [ready(`10.0.${i >> 8}.${i & 255}`, 'n1')]),
    after: manyUdp(3000, () => []),
    want: [{ protocol: 'udp', isIpv6: false, dstNat: 'any' }],
  },
  {
    name: 'first endpoints of Services with few ports, by the ports',
    before: manyUdp(300, () => []),
    after: manyUdp(300, () => [ready('10.0.0.1', 'n1')]),
    want: [{ protocol: 'udp', isIpv6: false, origPortDst: 53 }],
  },
  {
    name: 'first endpoints of Services with many ports, by one filter',
    before: manyUdp(
      300,
      () => [],
      (i) => 1000 + i,
    ),
    after: manyUdp(
      300,
      () => [ready('10.0.0.1', 'n1')],
      (i) => 1000 + i,
    ),
    want: [{ protocol: 'udp', isIpv6: false }],
  },
]
for (const { name, before, after, want } of widened) {
  test(`SVC-13 a change of very many UDP Services makes few filters: ${name}`, () => assert.deepEqual(staleFlows(before, after), want))
}
