import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backendOf } from './backends.ts'
import { backendTlsOf, compilePolicy, configMapsOf, policyOutcomes, targetServicesOf } from './backendTls.ts'
import type { BackendTlsPolicy, PolicyTarget } from './kinds.ts'
import { policyAncestors } from './statuses.ts'
import type { ClusterView } from './view.ts'

const configMap = (name: string) => ({ kind: 'ConfigMap', name })
const valid = { caCertificateRefs: [configMap('ca')], hostname: 'backend.test' }
type Validation = BackendTlsPolicy['spec']['validation']

function policyOf(name: string, targets: Partial<PolicyTarget>[], validation: Validation = valid, creationTimestamp = '2026-01-01T00:00:00Z') {
  const targetRefs = targets.map((one) => ({ group: '', kind: 'Service', name: 's', ...one }))
  return { metadata: { namespace: 'd', name, uid: name, generation: 3, creationTimestamp }, spec: { targetRefs, validation } } as unknown as BackendTlsPolicy
}

function viewOf(...policies: BackendTlsPolicy[]): ClusterView {
  const ports = [{ name: 'one', port: 1 }, { name: 'two', port: 2, appProtocol: 'kubernetes.io/h2c' }, { port: 3 }]
  return {
    service: (key: string) => (key === 'd/s' ? { spec: { ports } } : undefined),
    grantsIn: () => [],
    policiesFor: (key: string) => policies.filter((policy) => targetServicesOf(policy).includes(key)),
    authoritiesIn: (key: string) => (key.startsWith('d/ca') ? { pem: `pem of ${key}`, version: `v of ${key}` } : { problem: 'it is broken' }),
  } as unknown as ClusterView
}

const hostFor = (portName: string, ...policies: BackendTlsPolicy[]) => {
  const found = backendTlsOf('d/s', portName, viewOf(...policies))
  return typeof found === 'object' ? found.hostname : found
}
const named = (hostname: string) => ({ ...valid, hostname })

test('ING-05 a policy for a port comes before one for the whole Service, and the oldest one before the others', () => {
  const [whole, one] = [policyOf('whole', [{}], named('whole')), policyOf('one', [{ sectionName: 'one' }], named('one'))]
  assert.deepEqual([hostFor('one', whole, one), hostFor('two', whole, one), hostFor('', whole, one)], ['one', 'whole', 'whole'])
  assert.deepEqual([hostFor('two', one), hostFor('', one)], [undefined, undefined])
  const older = policyOf('z', [{}], named('older'), '2025-01-01T00:00:00Z')
  const byName = policyOf('a', [{}], named('first'))
  assert.equal(hostFor('one', whole, older, byName), 'older')
  assert.equal(hostFor('one', whole, byName), 'first')
  assert.equal(hostFor('one', policyOf('other', [{ name: 'other' }]), policyOf('kind', [{ kind: 'Other' }])), undefined)
})

test('ING-05 a policy is compiled to what a handshake needs, and its id changes with the policy and its ConfigMaps', () => {
  const caCertificateRefs = [configMap('ca'), configMap('ca2')]
  const subjectAltNames = [
    { type: 'Hostname', hostname: 'A.test' },
    { type: 'URI', uri: 'spiffe://a' },
  ]
  const { tls, accepted, resolved } = compilePolicy(policyOf('p', [{}], { caCertificateRefs, hostname: 'h.test', subjectAltNames }), viewOf())
  assert.deepEqual([accepted.status, resolved.status], ['True', 'True'])
  assert.deepEqual(tls, {
    id: 'p 3 v of d/ca,v of d/ca2',
    hostname: 'h.test',
    authorities: 'pem of d/ca\npem of d/ca2',
    subjectAltNames: [
      { type: 'Hostname', value: 'a.test' },
      { type: 'URI', value: 'spiffe://a' },
    ],
  })
  const system = compilePolicy(policyOf('p', [{}], { wellKnownCACertificates: 'System', hostname: 'h.test' }), viewOf())
  assert.deepEqual([system.tls?.authorities, system.accepted.status, system.resolved.status], [undefined, 'True', 'True'])
})

const refused: [what: string, validation: Validation, accepted: string, resolved: string][] = [
  ['a ConfigMap that cannot be used', { ...valid, caCertificateRefs: [configMap('broken')] }, 'False NoValidCACertificate', 'False InvalidCACertificateRef'],
  ['an object of another kind', { ...valid, caCertificateRefs: [{ kind: 'Secret', name: 'ca' }] }, 'False NoValidCACertificate', 'False InvalidKind'],
  ['an unknown set of certificates', { wellKnownCACertificates: 'example.com/ours', hostname: 'h' }, 'False Invalid', 'True ResolvedRefs'],
  ['no certificates', { hostname: 'h' }, 'False Invalid', 'True ResolvedRefs'],
  ['no validation', undefined, 'False Invalid', 'True ResolvedRefs'],
]
for (const [what, validation, accepted, resolved] of refused) {
  test(`ING-05 a policy with ${what} is not accepted, and its Service is not asked in clear text`, () => {
    const policy = { ...policyOf('p', [{}]), spec: { ...policyOf('p', [{}]).spec, validation } } as BackendTlsPolicy
    const outcomes = policyOutcomes(policy, viewOf(policy)).map(({ status, reason }) => `${status} ${reason}`)
    assert.deepEqual(outcomes, [accepted, resolved])
    assert.equal(hostFor('one', policy), 'unverifiable')
    assert.deepEqual(backendOf({ name: 's', port: 1 }, { kind: 'HTTPRoute', namespace: 'd' }, viewOf(policy), []), {
      service: 'd/s',
      port: 1,
      tls: 'unverifiable',
    })
  })
}

test('ING-05 one of two ConfigMaps that cannot be used leaves the policy accepted, and is named', () => {
  const policy = policyOf('p', [{}], { ...valid, caCertificateRefs: [configMap('broken'), configMap('ca')] })
  const { tls, accepted, resolved } = compilePolicy(policy, viewOf())
  assert.deepEqual(
    [tls?.authorities, accepted.status, resolved.reason, resolved.message],
    ['pem of d/ca', 'True', 'InvalidCACertificateRef', 'ConfigMap broken: it is broken'],
  )
})

test('ING-05 a policy says which older one has its target, and which target does not exist', () => {
  const first = policyOf('a', [{}])
  const ofPort = policyOf('b', [{ sectionName: 'one' }])
  const acceptedOf = (policy: BackendTlsPolicy) => {
    const [{ status, reason, message } = { status: '', reason: '', message: '' }] = policyOutcomes(policy, viewOf(first, ofPort, policy))
    return `${status} ${reason}: ${message}`
  }
  assert.equal(acceptedOf(first), 'True Accepted: ')
  assert.equal(acceptedOf(ofPort), 'True Accepted: ')
  assert.equal(acceptedOf(policyOf('c', [{}])), 'False Conflicted: The older policy a has the target s')
  assert.equal(acceptedOf(policyOf('c', [{ sectionName: 'one' }])), 'False Conflicted: The older policy b has the target s, port one')
  assert.equal(acceptedOf(policyOf('c', [{ sectionName: 'ten' }])), 'False TargetNotFound: Service d/s has no port of the name ten')
  assert.equal(acceptedOf(policyOf('c', [{ name: 'none' }])), 'False TargetNotFound: There is no Service d/none')
  assert.equal(acceptedOf(policyOf('c', [{ kind: 'Pod' }])), 'False Invalid: Targets of kind Pod are not supported')
  const withOptions = { ...policyOf('c', [{ sectionName: 'two' }]) }
  withOptions.spec = { ...withOptions.spec, options: { 'example.com/min': '1.3' } }
  assert.equal(acceptedOf(withOptions), 'True Accepted: Options are not supported and have no effect: example.com/min')
})

test('ING-05 the backend of a route has the policy of its port, whatever it speaks', () => {
  const view = viewOf(policyOf('p', [{}], { ...valid, caCertificateRefs: [configMap('ca')] }))
  const found = [1, 2, 3].map((port) => backendOf({ name: 's', port }, { kind: 'HTTPRoute', namespace: 'd' }, view, []))
  assert.deepEqual(
    found.map((one) => [one?.protocol, typeof one?.tls === 'object' ? one.tls.hostname : undefined]),
    [
      [undefined, 'backend.test'],
      ['h2', 'backend.test'],
      [undefined, 'backend.test'],
    ],
  )
})

test('ING-05 a policy names its Services and ConfigMaps once each', () => {
  const policy = policyOf('p', [{ sectionName: 'one' }, { sectionName: 'two' }, { name: 't' }, { kind: 'Pod', name: 'u' }], {
    ...valid,
    caCertificateRefs: [configMap('ca'), configMap('ca'), { kind: 'Secret', name: 'x' }],
  })
  assert.deepEqual([targetServicesOf(policy), configMapsOf(policy)], [['d/s', 'd/t'], ['d/ca']])
})

test('ING-05 the status of a policy has an entry for each Gateway, at most 16 with those of other controllers, which stay', () => {
  const policy = policyOf('p', [{}])
  const now = '2026-01-02T00:00:00Z'
  const other = { ancestorRef: { name: 'x' }, controllerName: 'example.com/other', conditions: [] }
  const first = policyAncestors(policy, policyOutcomes(policy, viewOf(policy)), ['e/b', 'd/a'], now)
  assert.deepEqual(
    first.map(({ ancestorRef, conditions }) => [ancestorRef, conditions.map(({ type, status, observedGeneration }) => [type, status, observedGeneration])]),
    [
      ['d', 'a'],
      ['e', 'b'],
    ].map(([namespace, name]) => [
      { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace, name },
      [
        ['Accepted', 'True', 3],
        ['ResolvedRefs', 'True', 3],
      ],
    ]),
  )
  const later = { ...policy, status: { ancestors: [...first, other] } } as BackendTlsPolicy
  const again = policyAncestors(later, policyOutcomes(policy, viewOf(policy)), ['d/a'], '2026-01-03T00:00:00Z')
  assert.deepEqual([again.length, again[0], again[1]?.conditions[0]?.lastTransitionTime], [2, other, now])
  const many = Array.from({ length: 40 }, (_, i) => `d/g${i}`)
  assert.equal(policyAncestors(later, [], many, now).length, 16)
})
