import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { endpoints } from './endpoints.ts'
import { service, setServiceDefaults } from './service.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)

function subject(spec: Partial<ServiceSpec> = {}): Service {
  const made: Service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { ports: [{ port: 80 }], ...spec }, status: {} }
  setServiceDefaults(made)
  return made
}

test('a service gets upstream’s defaults', () => {
  assert.deepEqual(subject({ type: 'LoadBalancer', selector: { a: 'b' } }).spec, {
    ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    type: 'LoadBalancer',
    selector: { a: 'b' },
    sessionAffinity: 'None',
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    allocateLoadBalancerNodePorts: true,
  })
})

const cases: [string, Partial<ServiceSpec>, string[]][] = [
  ['good', {}, []],
  ['no ports', { ports: [] }, ['spec.ports: Required value']],
  ['headless without ports', { ports: [], clusterIP: 'None', clusterIPs: ['None'] }, []],
  ['names needed', { ports: [{ port: 1 }, { port: 2 }] }, ['spec.ports[0].name: Required value', 'spec.ports[1].name: Required value']],
  [
    'same port twice',
    {
      ports: [
        { name: 'a', port: 1 },
        { name: 'b', port: 1 },
      ],
    },
    ['spec.ports[1]: Duplicate value: {"protocol":"TCP","port":1}'],
  ],
  [
    'bad port',
    { ports: [{ port: 70_000 }] },
    [
      'spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive',
      'spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
    ],
  ],
  ['node port of a ClusterIP', { ports: [{ port: 1, nodePort: 30_000 }] }, ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]],
  ['type', { type: 'Magic' }, ['spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"']],
  ['external name', { type: 'ExternalName', ports: [] }, ['spec.externalName: Required value']],
  [
    'headless balancer',
    { type: 'LoadBalancer', clusterIP: 'None', clusterIPs: ['None'] },
    [`spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for LoadBalancer services`],
  ],
  ['loopback', { externalIPs: ['127.0.0.1'] }, ['spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)']],
  [
    'two of a family',
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'] },
    ['spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family'],
  ],
  [
    'policy without access',
    { externalTrafficPolicy: 'Local' },
    ['spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services'],
  ],
  ['ranges', { loadBalancerSourceRanges: ['10.0.0.0/8'] }, ["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"]],
]

const annotated: readonly (readonly [type: Service['spec']['type'], value: string, want: string[]])[] = [
  ['LoadBalancer', '10.0.0.0/8, 192.0.2.1/32', []],
  ['LoadBalancer', '  ', []],
  ['LoadBalancer', '10.0.0.0/8 return\nflush ruleset', ['10.0.0.0/8 return\nflush ruleset']],
  ['LoadBalancer', '10.0.0.0/8,,', ['', '']],
]
for (const [type, value, want] of annotated)
  test(`service validation: the annotated source ranges ${JSON.stringify(value)}`, () => {
    const obj = subject({ type: type ?? '' })
    const key = 'service.beta.kubernetes.io/load-balancer-source-ranges'
    obj.metadata.annotations = { [key]: value }
    const errors = texts(service.validate?.({ obj, path, context })).filter((text) => text.startsWith('metadata.annotations'))
    const wanted = want.map(
      (one) => `metadata.annotations[${key}]: Invalid value: ${JSON.stringify(one)}: must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
    )
    assert.deepEqual(errors, wanted)
    obj.spec.type = 'ClusterIP'
    const forbidden = `metadata.annotations[${key}]: Forbidden: may only be used when \`type\` is 'LoadBalancer'`
    assert.equal(texts(service.validate?.({ obj, path, context })).filter((text) => text === forbidden).length, 1)
  })

for (const [name, spec, want] of cases)
  test(`service validation: ${name}`, () => assert.deepEqual(texts(service.validate?.({ obj: subject(spec), path, context })), want))

test('an update without the allocated values keeps them', () => {
  const old = subject({
    type: 'NodePort',
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    ports: [{ port: 80, nodePort: 30_080 }],
  })
  const obj = subject({ type: 'NodePort', ports: [{ port: 80, targetPort: 8080 }] })
  service.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual(obj.spec, { ...old.spec, ports: [{ port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 30_080 }] })
})

test('a change of type loses what the old type had', () => {
  const old = subject({ type: 'NodePort', clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ports: [{ port: 80, nodePort: 30_080 }] })
  const obj = deepCopy(old)
  obj.spec.type = 'ClusterIP'
  service.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual([obj.spec.ports?.[0]?.nodePort, obj.spec.externalTrafficPolicy, obj.spec.clusterIP], [undefined, undefined, '10.0.0.1'])
})

test('the first cluster IP never changes', () => {
  const old = subject({ clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] })
  const obj = subject({ clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2'] })
  assert.deepEqual(texts(service.validateUpdate?.({ obj, old, path, context })), ['spec.clusterIPs[0]: Invalid value: "10.0.0.2": may not change once set'])
})

test('API-17 service columns', () => {
  const cells = (obj: Service) => (service.columns ?? []).map((column) => column.value(obj, 0))
  assert.deepEqual(cells(subject({ selector: { app: 'web' } })), ['s', 'ClusterIP', '<none>', '<none>', '80/TCP', '<unknown>', 'app=web'])
  const balanced = subject({ type: 'LoadBalancer', clusterIP: '10.0.0.1', ports: [{ port: 80, nodePort: 30_080 }], externalIPs: ['1.2.3.4'] })
  assert.deepEqual(cells(balanced).slice(1, 5), ['LoadBalancer', '10.0.0.1', '1.2.3.4', '80:30080/TCP'])
  assert.equal(cells(subject({ type: 'LoadBalancer' }))[3], '<pending>')
})

test('API-17 the Endpoints column shows three and counts the rest', () => {
  const addresses = ['1', '2', '3', '4', '5'].map((n) => ({ ip: `10.0.0.${n}` }))
  const made = { apiVersion: 'v1', kind: 'Endpoints', metadata: {}, subsets: [{ addresses, ports: [{ port: 80 }] }] }
  assert.equal(endpoints.columns?.[1]?.value(made, 0), '10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...')
})

const warned: [string, Partial<ServiceSpec>, string[]][] = [
  ['a plain service', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] }, []],
  ['external addresses', { externalIPs: ['1.2.3.4'] }, ['spec.externalIPs is deprecated and may no longer be implemented in some clusters']],
  ['external addresses without effect', { clusterIP: 'None', externalIPs: ['1.2.3.4'] }, ['spec.externalIPs is ignored for headless services']],
  [
    'external addresses of a name',
    { type: 'ExternalName', externalName: 'a.b', externalIPs: ['1.2.3.4'] },
    ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
  ],
  ['a name without effect', { externalName: 'a.b' }, ['spec.externalName is ignored when spec.type is not "ExternalName"']],
  [
    'unusual spellings',
    { clusterIP: '2001:DB8::1', clusterIPs: ['2001:DB8::1'], type: 'LoadBalancer', loadBalancerIP: '2001:db8:0::2', loadBalancerSourceRanges: ['10.1.2.3/8'] },
    [
      'spec.clusterIPs[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
      'spec.loadBalancerIP: IPv6 address "2001:db8:0::2" should be in RFC 5952 canonical format ("2001:db8::2")',
      'spec.loadBalancerSourceRanges[0]: CIDR value "10.1.2.3/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.1.2.3/32"?)',
    ],
  ],
  ['the old word for zones', { trafficDistribution: 'PreferClose' }, ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"']],
]
for (const [name, spec, want] of warned)
  test(`service warnings: ${name}`, () => assert.deepEqual(service.warnings?.({ obj: subject(spec), path, context }), want))
test('service warnings: the old annotation', () => {
  const obj = { ...subject(), metadata: { name: 's', annotations: { 'service.kubernetes.io/topology-aware-hints': 'auto' } } }
  assert.deepEqual(service.warnings?.({ obj, path, context }), [
    'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
  ])
})
