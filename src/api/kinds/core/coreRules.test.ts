import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LimitRangeItem, Node, PersistentVolume, PersistentVolumeClaim, PodTemplate, ResourceQuota, Service, ServiceAccount } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { limitRange } from './limitRange.ts'
import { node } from './node.ts'
import { persistentVolume } from './persistentVolume.ts'
import { persistentVolumeClaim } from './persistentVolumeClaim.ts'
import { validateResourceRequirements } from './pod/validateResources.ts'
import { podTemplate } from './podTemplate.ts'
import { resourceQuota } from './resourceQuota.ts'
import { service } from './service.ts'
import { serviceAccount } from './serviceAccount.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)
const kinds = { resourceQuota, limitRange, node, persistentVolume, persistentVolumeClaim, service }
type Kinds = typeof kinds
type Rest = { spec?: unknown; status?: unknown; annotations?: Record<string, string> }

/** An object after its defaults, as the strategy would see it. */
function made(kind: keyof Kinds, { spec, status, annotations }: Rest) {
  const of = kinds[kind] as unknown as typeof node
  const obj = { apiVersion: 'v1', kind: of.kind, metadata: { name: 'x', annotations }, spec: deepCopy(spec), status: deepCopy(status) } as Node
  of.defaults?.(obj, 'v1')
  return { of, obj }
}
function faultsOf(kind: keyof Kinds, rest: Rest): string[] {
  const { of, obj } = made(kind, rest)
  return texts(of.validate?.({ obj, path, context }))
}
function changeFaultsOf(kind: keyof Kinds, before: Rest, after: Rest): string[] {
  const { of, obj } = made(kind, after)
  return texts(of.validateUpdate?.({ obj, old: made(kind, before).obj, path, context }))
}

const quotas: [name: string, spec: ResourceQuota['spec'], want: string[]][] = [
  ['good', { hard: { cpu: '1', 'requests.nvidia.com/gpu': '1', 'hugepages-2Mi': '2Mi' }, scopes: ['NotBestEffort'] }, []],
  [
    'an unknown name',
    { hard: { bananas: '1' } },
    [
      'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource type or fully qualified',
      'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource for quota',
    ],
  ],
  ['a negative amount', { hard: { pods: '-1' } }, ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0']],
  ['half a pod', { hard: { pods: '500m' } }, ['spec.hard[pods]: Invalid value: "500m": must be an integer']],
  ['an unknown scope', { hard: {}, scopes: ['Odd'] }, ['spec.scopes: Invalid value: ["Odd"]: unsupported scope']],
  [
    'a scope of pods for services',
    { hard: { services: '1' }, scopes: ['Terminating'] },
    ['spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource'],
  ],
  [
    'scopes that exclude each other',
    { hard: {}, scopes: ['Terminating', 'NotTerminating'] },
    ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
  ],
  [
    'a scope that takes no values',
    { scopeSelector: { matchExpressions: [{ scopeName: 'BestEffort', operator: 'In', values: ['x'] }] } },
    [
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be \'Exists\' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity',
    ],
  ],
  [
    'no values',
    { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In' }] } },
    ["spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"],
  ],
  [
    'values for Exists',
    { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'Exists', values: ['x'] }] } },
    ["spec.scopeSelector.matchExpressions.values: Invalid value: [\"x\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"],
  ],
  [
    'an unknown operator',
    { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'Near' }] } },
    ['spec.scopeSelector.matchExpressions.operator: Invalid value: "Near": not a valid selector operator'],
  ],
]
for (const [name, spec, want] of quotas) test(`API-17 resource quota: ${name}`, () => assert.deepEqual(faultsOf('resourceQuota', { spec }), want))

const ranges: [name: string, limits: LimitRangeItem[], want: string[]][] = [
  ['good', [{ type: 'Container', min: { cpu: '1' }, max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '2' } }], []],
  ['a type twice', [{ type: 'Pod' }, { type: 'Pod' }], ['spec.limits[1].type: Duplicate value: "Pod"']],
  ['an unknown type', [{ type: 'Odd' }], ['spec.limits[0].type: Invalid value: "Odd": must be a standard limit type or fully qualified']],
  [
    'defaults of pods',
    [{ type: 'Pod', default: { cpu: '1' }, defaultRequest: { cpu: '1' } }],
    [
      "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
      "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
    ],
  ],
  [
    'claims without a bound',
    [{ type: 'PersistentVolumeClaim' }],
    ['spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided'],
  ],
  [
    'min above max',
    [{ type: 'Pod', min: { cpu: '2' }, max: { cpu: '1' } }],
    ['spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
  ],
  [
    'request above default',
    [{ type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '2' } }],
    ['spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1'],
  ],
  [
    'a ratio below one',
    [{ type: 'Pod', maxLimitRequestRatio: { cpu: '500m' } }],
    ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
  ],
  [
    'a ratio that the bounds exclude',
    [{ type: 'Pod', min: { cpu: '1' }, max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '3' } }],
    ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
  ],
  [
    'extended resources overcommitted',
    [{ type: 'Container', default: { 'a.io/x': '2' }, defaultRequest: { 'a.io/x': '1' } }],
    ['spec.limits[0].defaultRequest[a.io/x]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in a.io/x'],
  ],
]
for (const [name, limits, want] of ranges) test(`API-17 limit range: ${name}`, () => assert.deepEqual(faultsOf('limitRange', { spec: { limits } }), want))

const nodes: [name: string, rest: Rest, want: string[]][] = [
  ['good', { spec: { podCIDR: '10.0.0.0/24', taints: [{ key: 'k', effect: 'NoSchedule' }] } }, []],
  [
    'a taint twice',
    {
      spec: {
        taints: [
          { key: 'k', effect: 'NoSchedule' },
          { key: 'k', value: 'v', effect: 'NoSchedule' },
        ],
      },
    },
    ['metadata.taints[1]: Duplicate value: {"key":"k","value":"v","effect":"NoSchedule"}: taints must be unique by key and effect pair'],
  ],
  [
    'a taint of no effect',
    { spec: { taints: [{ key: 'k', effect: 'Maybe' }] } },
    ['metadata.taints[0].effect: Unsupported value: "Maybe": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'],
  ],
  [
    'a CIDR that is none',
    { spec: { podCIDRs: ['x'] } },
    ['spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
  ],
  [
    'CIDRs of one family',
    { spec: { podCIDRs: ['10.0.0.0/24', '10.0.0.0/24'] } },
    [
      'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.0.0/24"]: may specify no more than one CIDR for each IP family',
      'spec.podCIDRs[1]: Duplicate value: "10.0.0.0/24"',
    ],
  ],
  [
    'a negative capacity',
    { status: { capacity: { cpu: '-1' }, allocatable: {} } },
    ['status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0'],
  ],
  [
    'an address twice',
    {
      status: {
        addresses: [
          { type: 'Hostname', address: 'a' },
          { type: 'Hostname', address: 'a' },
        ],
      },
    },
    ['status.addresses[1]: Duplicate value: {"type":"Hostname","address":"a"}'],
  ],
]
for (const [name, rest, want] of nodes) test(`API-17 node: ${name}`, () => assert.deepEqual(faultsOf('node', rest), want))

const clientIP = (timeoutSeconds: number) => ({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } })
const port = { ports: [{ port: 80 }] }
const services: [name: string, spec: Partial<Service['spec']>, want: string[]][] = [
  ['good', port, []],
  ['no ports', {}, ['spec.ports: Required value']],
  ['an external name that is missing', { type: 'ExternalName' }, ['spec.externalName: Required value']],
  [
    'an external name with an address',
    { type: 'ExternalName', externalName: 'a.b', clusterIPs: ['10.0.0.1'], clusterIP: '10.0.0.1' },
    ['spec.clusterIPs: Forbidden: may not be set for ExternalName services'],
  ],
  [
    'a timeout that is too long',
    { ...port, ...clientIP(86_401) },
    ['spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400'],
  ],
  ['affinity settings are dropped without affinity', { ...port, ...clientIP(1), sessionAffinity: 'None' }, []],
  [
    'source ranges',
    { ...port, type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.1'] },
    ['spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
  ],
  [
    'an external address of this machine',
    { ...port, externalIPs: ['127.0.0.1'] },
    ['spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ],
]
for (const [name, spec, want] of services) test(`API-17 service: ${name}`, () => assert.deepEqual(faultsOf('service', { spec }), want))

test('API-17 service: topology annotations that disagree', () => {
  const annotations = { 'service.kubernetes.io/topology-mode': 'Auto', 'service.kubernetes.io/topology-aware-hints': 'Disabled' }
  assert.deepEqual(faultsOf('service', { spec: port, annotations }), [
    'metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "Auto": must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified',
  ])
})

const ingress: [name: string, ingress: object, spec: object, want: string[]][] = [
  ['good', { ip: '1.2.3.4', ipMode: 'VIP' }, { type: 'LoadBalancer' }, []],
  [
    'an address of a Service of another type',
    { ip: '1.2.3.4', ipMode: 'VIP' },
    {},
    ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"],
  ],
  [
    'an address that is none',
    { ip: 'x', ipMode: 'VIP' },
    { type: 'LoadBalancer' },
    ['status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ],
  ['no mode', { ip: '1.2.3.4' }, { type: 'LoadBalancer' }, ['status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set']],
  [
    'a mode without an address',
    { hostname: 'h', ipMode: 'VIP' },
    { type: 'LoadBalancer' },
    ['status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set'],
  ],
  [
    'an unknown mode',
    { ip: '1.2.3.4', ipMode: 'Odd' },
    { type: 'LoadBalancer' },
    ['status.loadBalancer.ingress[0].ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"'],
  ],
  [
    'a hostname that is an address',
    { hostname: '1.2.3.4' },
    { type: 'LoadBalancer' },
    ['status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
  ],
]
for (const [name, item, spec, want] of ingress) {
  test(`API-17 load balancer status: ${name}`, () => {
    const given = { spec: { ...port, ...spec }, status: { loadBalancer: { ingress: [item] } } }
    const obj = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' }, ...deepCopy(given) } as Service
    assert.deepEqual(
      texts(service.status?.validateUpdate?.({ obj, old: made('service', { spec: given.spec, status: {} }).obj as unknown as Service, path, context })),
      want,
    )
  })
}

test('API-17 service warnings: what a headless service ignores', () => {
  const obj = made('service', { spec: { ...port, clusterIP: 'None', clusterIPs: ['None'], externalIPs: ['1.2.3.4'], ...clientIP(1) } })
    .obj as unknown as Service
  assert.deepEqual(service.warnings?.({ obj, path, context }), [
    'spec.externalIPs is ignored for headless services',
    'spec.SessionAffinity is ignored for headless services',
  ])
})

const disk = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] }
const host = { ...disk, hostPath: { path: '/x' } }
const volumes: [name: string, spec: Partial<PersistentVolume['spec']>, want: string[]][] = [
  ['good', host, []],
  ['no source', disk, ['spec: Required value: must specify a volume type']],
  ['two sources', { ...host, nfs: { server: 's', path: '/x' } }, ['spec.nfs: Forbidden: may not specify more than 1 volume type']],
  [
    'nothing',
    { hostPath: { path: '/x' } },
    ['spec.accessModes: Required value', 'spec.capacity: Required value', 'spec.capacity: Unsupported value: null: supported values: "storage"'],
  ],
  ['other capacity', { ...host, capacity: { cpu: '1' } }, ['spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"']],
  ['no capacity', { ...host, capacity: { storage: '0' } }, ['spec.capacity[storage]: Invalid value: "0": must be greater than zero']],
  ['a path that climbs', { ...disk, hostPath: { path: '/a/../b' } }, ['spec.hostPath.path: Invalid value: "/a/../b": must not contain \'..\'']],
  ['a local volume that is nowhere', { ...disk, local: { path: '/x' } }, ['spec.nodeAffinity: Required value: Local volume requires node affinity']],
  [
    'an unknown mode',
    { ...host, accessModes: ['Odd'] },
    ['spec.accessModes: Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'],
  ],
  [
    'two modes that exclude each other',
    { ...host, accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] },
    ['spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes'],
  ],
  [
    'recycling the root',
    { ...disk, hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' },
    ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
  ],
  [
    'an attributes class without a driver',
    { ...host, volumeAttributesClassName: 'a' },
    ['spec.csi: Required value: has to be specified when using volumeAttributesClassName'],
  ],
  [
    'half a secret',
    { ...disk, csi: { driver: 'd', volumeHandle: '', nodeStageSecretRef: { name: 's' }, nodePublishSecretRef: { name: 's' } } },
    ['spec.csi.volumeHandle: Required value', 'spec.csi.nodePublishSecretRef.namespace: Required value'],
  ],
  ['no affinity', { ...host, nodeAffinity: {} }, ['spec.nodeAffinity.required: Required value: must specify required node constraints']],
]
for (const [name, spec, want] of volumes) test(`API-17 persistent volume: ${name}`, () => assert.deepEqual(faultsOf('persistentVolume', { spec }), want))

const ask = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } }
const claims: [name: string, spec: Partial<PersistentVolumeClaim['spec']>, want: string[]][] = [
  ['good', ask, []],
  ['nothing', {}, ['spec.accessModes: Required value: at least 1 access mode is required', 'spec.resources[storage]: Required value']],
  ['no room', { ...ask, resources: { requests: { storage: '0' } } }, ['spec.resources[storage]: Invalid value: "0": must be greater than zero']],
  [
    'a selector',
    { ...ask, selector: { matchExpressions: [{ key: 'k', operator: 'In' }] } },
    ["spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
  ],
  ['a volume mode', { ...ask, volumeMode: 'Odd' }, ['spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"']],
  [
    'a data source of this group',
    { ...ask, dataSource: { kind: 'Secret', name: '' } },
    [
      'spec.dataSource.name: Required value',
      'spec.dataSource: Invalid value: "Secret": must be \'PersistentVolumeClaim\' when referencing the default apiGroup',
    ],
  ],
  [
    'data sources that differ',
    { ...ask, dataSource: { kind: 'PersistentVolumeClaim', name: 'a' }, dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'b' } },
    ['spec: Invalid value: "spec.dataSource": must match dataSourceRef'],
  ],
  [
    'a class name',
    { ...ask, storageClassName: 'A_b' },
    [
      "spec.storageClassName: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
]
for (const [name, spec, want] of claims) test(`API-17 claim: ${name}`, () => assert.deepEqual(faultsOf('persistentVolumeClaim', { spec }), want))

const bound = { phase: 'Bound', capacity: { storage: '1Gi' } }
const sized = (storage: string) => ({ ...ask, resources: { requests: { storage } } })
const changes: [name: string, kind: keyof Kinds, before: Rest, after: Rest, want: string[]][] = [
  [
    'scopes of a quota',
    'resourceQuota',
    { spec: { hard: {} } },
    { spec: { hard: {}, scopes: ['BestEffort'] } },
    ['spec.scopes: Invalid value: ["BestEffort"]: field is immutable'],
  ],
  [
    'CIDRs of a node',
    'node',
    { spec: { podCIDR: '10.0.0.0/24' } },
    { spec: { podCIDR: '10.1.0.0/24' } },
    ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
  ],
  [
    'the provider of a node',
    'node',
    { spec: { providerID: 'a' } },
    { spec: { providerID: 'b' } },
    ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'],
  ],
  ['the external id of a node', 'node', { spec: {} }, { spec: { externalID: 'b' } }, ['spec.externalID: Forbidden: may not be updated']],
  [
    'the source of a volume',
    'persistentVolume',
    { spec: host },
    { spec: { ...disk, hostPath: { path: '/y' } } },
    ['spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n'],
  ],
  [
    'the mode of a volume',
    'persistentVolume',
    { spec: host },
    { spec: { ...host, volumeMode: 'Block' } },
    ['volumeMode: Invalid value: "Block": field is immutable'],
  ],
  ['a claim that grows', 'persistentVolumeClaim', { spec: ask, status: bound }, { spec: sized('3Gi'), status: bound }, []],
  [
    'a claim that grows before it is bound',
    'persistentVolumeClaim',
    { spec: ask },
    { spec: sized('3Gi') },
    ['spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n'],
  ],
  ['a claim that shrinks to more than its status has', 'persistentVolumeClaim', { spec: ask, status: bound }, { spec: sized('1500Mi'), status: bound }, []],
  [
    'a claim that shrinks to what its status has',
    'persistentVolumeClaim',
    { spec: ask, status: bound },
    { spec: sized('1Gi'), status: bound },
    ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
  ],
  ['the binding of a claim', 'persistentVolumeClaim', { spec: ask }, { spec: { ...ask, volumeName: 'v' } }, []],
]
for (const [name, kind, before, after, want] of changes) test(`API-17 change: ${name}`, () => assert.deepEqual(changeFaultsOf(kind, before, after), want))

test('API-17 claim warnings: a size of half a byte', () => {
  const obj = made('persistentVolumeClaim', { spec: sized('100m') }).obj as unknown as PersistentVolumeClaim
  assert.deepEqual(persistentVolumeClaim.warnings?.({ obj, path, context }), [
    'spec.resources.requests[storage]: fractional byte value "100m" is invalid, must be an integer',
  ])
})

const amounts: [name: string, resources: object, want: string[]][] = [
  [
    'huge pages by halves',
    { limits: { 'hugepages-2Mi': '3Mi', cpu: '1' }, requests: { 'hugepages-2Mi': '3Mi' } },
    [
      'r.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      'r.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
    ],
  ],
  ['huge pages alone', { limits: { 'hugepages-2Mi': '2Mi' }, requests: { 'hugepages-2Mi': '2Mi' } }, ['r: Forbidden: HugePages require cpu or memory']],
  [
    'extended resources overcommitted',
    { limits: { 'a.io/x': '2' }, requests: { 'a.io/x': '1' } },
    ['r.requests: Invalid value: "1": must be equal to a.io/x limit of 2'],
  ],
  [
    'half an extended resource',
    { limits: { 'a.io/x': '500m' }, requests: { 'a.io/x': '500m' } },
    ['r.limits[a.io/x]: Invalid value: "500m": must be an integer', 'r.requests[a.io/x]: Invalid value: "500m": must be an integer'],
  ],
  [
    'a claim that is none of the pod',
    { claims: [{ name: 'c' }] },
    ['r.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty'],
  ],
]
for (const [name, resources, want] of amounts)
  test(`API-17 resources: ${name}`, () => assert.deepEqual(texts(validateResourceRequirements(resources, new Set(), FieldPath.of('r'))), want))

test('API-17 service account: names of secrets, and a warning for an annotation that is new', () => {
  const key = 'kubernetes.io/enforce-mountable-secrets'
  const metadata = { name: 'x', annotations: { [key]: 'true' } }
  const obj: ServiceAccount = { apiVersion: 'v1', kind: 'ServiceAccount', metadata, secrets: [{ name: 's', namespace: 'other', uid: 'u' }] }
  serviceAccount.prepareForCreate?.({ obj, path, context })
  assert.deepEqual(obj.secrets, [{ name: 's' }])
  const text = `metadata.annotations[${key}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`
  assert.deepEqual(serviceAccount.warnings?.({ obj, path, context }), [text])
  assert.deepEqual(serviceAccount.warnings?.({ obj, path, context }, obj), [])
})

test('API-17 pod template: warnings of its pods', () => {
  const spec = { containers: [{ name: 'c', image: 'i' }], hostAliases: [{ ip: '1.1.1.1' }, { ip: '1.1.1.1' }] }
  const obj: PodTemplate = { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'x' }, template: { spec } }
  assert.deepEqual(podTemplate.warnings?.({ obj, path, context }), ['template.spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'])
})
