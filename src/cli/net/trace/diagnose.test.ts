/** The ten set-ups that break a connection, and what `skiff net trace` says about each; and what it says when it may not read everything. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ingress, IngressClass } from '#api/gen/types/networking.v1'
import { describeTrace } from './describe.ts'
import { diagnose } from './diagnose.ts'
import type { Cause, ServiceFacts, TraceFacts } from './facts.ts'
import { destination, good, node, pod, result, service, serviceFacts, verdict } from './testFacts.ts'

const refused = { front: result('10.96.0.5', 80, 'ECONNREFUSED'), direct: [] }
const silent = { front: result('10.96.0.5', 80, 'ETIMEDOUT'), direct: [result('10.244.1.2', 8080, 'ETIMEDOUT')] }
const withService = (more: Partial<ServiceFacts>): ServiceFacts => ({ ...serviceFacts, ...more })
const noName = [{ name: 'web', type: 'A', server: '192.0.2.53', code: 'NXDOMAIN' }] as const
const balanced = { ...service, spec: { ...service.spec, type: 'LoadBalancer', loadBalancerClass: 'example.test/none' } }
const ingress = { metadata: { namespace: 'd', name: 'web' }, spec: { ingressClassName: 'nginx' } } as Ingress
const classes = [{ metadata: { name: 'skiff' }, spec: { controller: 'skiff.dev/ingress' } }] as IngressClass[]
const expired = { certificateSubject: 'web', certificateNotBefore: '2025-01-01T00:00:00.000Z', certificateNotAfter: '2026-01-01T00:00:00.000Z' }
const routesOf = (...routes: NonNullable<NonNullable<ReturnType<TraceFacts['routes']['get']>>['found']>['routes'] & object) =>
  new Map([...good.routes, ['n1', { found: { mode: 'host-gw', routes } }] as const])

const setUps: readonly (readonly [name: string, broken: Partial<TraceFacts>, cause: Cause, text: RegExp])[] = [
  [
    'the selector matches no pod',
    { ...refused, destinations: [], service: withService({ selected: { found: [] }, others: { found: [pod('wob', 'n2', '10.244.1.2')] } }) },
    'selector',
    /selector app=web .* matches no pod in the namespace d; pods there have app=wob/,
  ],
  ['no endpoint is ready', { ...refused, destinations: [{ ...destination, ready: false }] }, 'notReady', /no endpoint is ready: web is not ready/],
  [
    'the targetPort is wrong',
    { front: result('10.96.0.5', 80, 'ECONNREFUSED'), destinations: [{ ...destination, port: 81 }], direct: [result('10.244.1.2', 81, 'ECONNREFUSED')] },
    'targetPort',
    /nothing listens on port 81 of the pod d\/web; its containers declare: 8080/,
  ],
  [
    'the targetPort is a name that no container has',
    { ...refused, destinations: [], service: withService({ port: { port: 80, targetPort: 'web' } }) },
    'targetPort',
    /no container .* names a port "web"; they name: http/,
  ],
  [
    'a policy denies it',
    { ...silent, destinations: [{ ...destination, verdict: { found: verdict(false) } }] },
    'policy',
    /deny .*: ingress of d\/web by d\/deny/,
  ],
  [
    'the dnsPolicy of the pod is Default',
    { ...good, pod: pod('client', 'n1', '10.244.0.2', { dnsPolicy: 'Default' }), answers: noName },
    'dnsPolicy',
    /dnsPolicy Default .* does not ask cluster DNS .* web: NXDOMAIN/,
  ],
  [
    'the node of the endpoint is down',
    { ...silent, nodes: new Map([...good.nodes, ['n2', { found: node('n2', false) }]]) },
    'node',
    /node n2 is not Ready: Kubelet stopped/,
  ],
  [
    'the node of the only endpoint is down, so that the endpoint is not ready',
    { ...silent, nodes: new Map([...good.nodes, ['n2', { found: node('n2', false) }]]), destinations: [{ ...destination, ready: false }] },
    'node',
    /node n2 is not Ready/,
  ],
  [
    'the proxy has stopped and its rules are gone',
    { front: silent.front, service: withService({ rules: { found: { mode: 'nftables', rules: [{ place: 'service-ips 10.96.0.5' }] } } }) },
    'proxy',
    /lacks 1 of 1 rules of the Service \(service-ips 10\.96\.0\.5\)/,
  ],
  [
    'the proxy has stopped, so that cluster DNS does not answer',
    {
      ...silent,
      answers: [{ name: 'web', type: 'A', server: '10.96.0.10', code: 'TIMEOUT' }],
      service: withService({ rules: { found: { mode: 'nftables', rules: [{ place: 'service-ips 10.96.0.5' }] } } }),
    },
    'proxy',
    /lacks 1 of 1 rules/,
  ],
  [
    'the rules of cluster DNS are gone, and the target is outside',
    {
      ...refused,
      front: undefined,
      service: undefined,
      destinations: [],
      answers: [{ name: 'example.org', type: 'A', server: '10.96.0.10', code: 'TIMEOUT' }],
      dnsRules: { found: { mode: 'nftables', rules: [{ place: 'service-ips 10.96.0.10 . udp . 53' }] } },
    },
    'proxy',
    /no name server answers: .* lacks 1 of 1 rules/,
  ],
  [
    'no proxy runs',
    { front: silent.front, service: withService({ rules: { found: { isStopped: true, note: 'no proxy' } } }) },
    'proxy',
    /the service proxy does not run on the pod's node/,
  ],
  [
    'the route to the node is missing',
    { ...silent, routes: routesOf({ cidr: '10.244.1.0/24', via: '10.88.0.11', state: 'missing' }) },
    'route',
    /n1 has no route to 10\.244\.1\.2: 10\.244\.1\.0\/24 via 10\.88\.0\.11 is missing/,
  ],
  [
    'a route of another program is more specific',
    {
      ...silent,
      routes: routesOf({ cidr: '10.244.1.0/24', via: '10.88.0.11', state: 'present' }, { cidr: '10.244.1.2', via: 'blackhole', state: 'foreign' }),
    },
    'route',
    /leads 10\.244\.1\.2 astray on n1: 10\.244\.1\.2 blackhole/,
  ],
  [
    'no controller has the class of the load balancer',
    { front: undefined, service: withService({ service: { found: balanced }, isExternal: true }) },
    'class',
    /asks for the class "example\.test\/none", and no controller/,
  ],
  [
    'the class of the Ingress does not exist',
    { service: undefined, front: undefined, destinations: [], direct: [], answers: noName, ingress: { ingress, classes: { found: classes } } },
    'class',
    /names the class "nginx", which does not exist; classes: skiff/,
  ],
  [
    'the certificate has expired',
    { front: result('10.96.0.5', 80, 'connected', { protocol: 'tls', ...expired }) },
    'certificate',
    /of web expired at 2026-01-01/,
  ],
  [
    'the certificate is of another name',
    { front: result('10.96.0.5', 80, 'connected', { protocol: 'tls', certificateSubject: 'other', certificateNameFault: 'Host: web. is not the CN: other' }) },
    'certificate',
    /certificate of other is not one of the name: Host: web/,
  ],
]

for (const [name, broken, cause, text] of setUps) {
  test(`SVC-13 skiff net trace names the culprit: ${name}`, () => {
    const { passes, culprit } = diagnose({ ...good, ...broken })
    assert.equal(passes, false)
    assert.equal(culprit?.cause, cause)
    assert.match(culprit.text, text)
  })
}

test('SVC-13 skiff net trace names no culprit for a connection that gets through', () => {
  const trace = diagnose(good)
  assert.equal(trace.passes, true)
  assert.equal(trace.culprit, undefined)
  assert.deepEqual(
    trace.hops.map(({ hop, state }) => `${hop} ${state}`),
    ['pod ok', 'proxy ok', 'name ok', 'service ok', 'endpoints ok', 'policies ok', 'route ok', 'route ok', 'endpoint ok', 'connection ok'],
  )
  assert.match(describeTrace(trace), /\n\nIt gets through\.\n$/)
})

test('SVC-13 skiff net trace shows what the caller may read, says what is not shown, and judges without a probe', () => {
  const notShown = 'you may not get nodes'
  const facts: TraceFacts = {
    ...good,
    nodes: new Map(['n1', 'n2'].map((name) => [name, { notShown }])),
    routes: new Map(['n1', 'n2'].map((name) => [name, { notShown }])),
    resolver: { notShown },
    answers: [],
    service: withService({ rules: { notShown } }),
    notProbed: notShown,
    front: undefined,
    direct: [],
  }
  const trace = diagnose(facts)
  assert.deepEqual([trace.passes, trace.culprit], [undefined, undefined])
  assert.ok(describeTrace(trace).includes(`node         n1: not shown: ${notShown}`), describeTrace(trace))
  assert.match(describeTrace(trace), /no packet was sent\.\n$/)
  const denied = diagnose({ ...facts, destinations: [{ ...destination, verdict: { found: verdict(false) } }] })
  assert.deepEqual([denied.passes, denied.culprit?.cause], [false, 'policy'])
})

const status = { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } }
const unasked: Partial<TraceFacts> = { notProbed: 'the node is busy', front: undefined, direct: [] }
const healthy: readonly (readonly [name: string, more: Partial<TraceFacts>])[] = [
  ['a load balancer with an address', { service: withService({ service: { found: { ...balanced, status } }, isExternal: true }) }],
  ['a load balancer whose Service is not shown', { service: withService({ service: { notShown: 'you may not get services' }, isExternal: true }) }],
  ['an Ingress with an address', { service: undefined, destinations: [], ingress: { ingress: { ...ingress, status }, classes: { found: classes } } }],
  ['names that could not be asked for', { resolver: { notShown: 'the node is busy' }, answers: [] }],
]
for (const [name, more] of healthy) {
  test(`SVC-13 skiff net trace names no culprit without a probe: ${name}`, () => {
    const { passes, culprit } = diagnose({ ...good, ...unasked, ...more })
    assert.deepEqual([passes, culprit], [undefined, undefined])
  })
}

test('SVC-13 skiff net trace calls a load balancer that is a host name untested, although its endpoints answer', () => {
  const named = { ...balanced, status: { loadBalancer: { ingress: [{ hostname: 'lb.example.org' }] } } }
  assert.equal(diagnose({ ...good, front: undefined, service: withService({ service: { found: named }, isExternal: true }) }).passes, undefined)
})

test('SVC-13 skiff net trace prints an IPv6 address that has a port in brackets', () => {
  const address = 'fd00:10:244:1::2'
  const facts: TraceFacts = {
    ...good,
    destinations: [{ ...destination, address }],
    front: result('fd00:10:96::5', 80),
    direct: [result(address, 8080)],
  }
  const text = describeTrace(diagnose(facts))
  assert.match(text, /\[fd00:10:96::5\]:80 accepts connections of the pod/)
  assert.match(text, /\[fd00:10:244:1::2\]:8080/)
  assert.doesNotMatch(text, /::5:80|::2:8080/)
})
