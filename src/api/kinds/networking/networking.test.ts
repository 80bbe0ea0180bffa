import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ingress, IngressClass, IPAddress, NetworkPolicy, ServiceCIDR } from '#api/gen/types/networking.v1'
import { kindRules } from '#testing/kindRules'
import { ingress } from './ingress.ts'
import { ingressClass } from './ingressClass.ts'
import { ipAddress } from './ipAddress.ts'
import { networkPolicy } from './networkPolicy.ts'
import { serviceCidr } from './serviceCidr.ts'

const apiVersion = 'networking.k8s.io/v1'
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

const goodIngress: Ingress = {
  apiVersion,
  kind: 'Ingress',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    rules: [{ host: 'a.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] } }],
  },
  status: { loadBalancer: {} },
}
const onIngress = kindRules('EXP-04', ingress, goodIngress)
const firstPath = 'spec.rules.0.http.paths.0'
const at = 'spec.rules[0].http.paths[0]'
onIngress.defaults('none beyond the empty status', { status: undefined }, { status: { loadBalancer: {} } })
onIngress.create([
  ['a good one', {}, []],
  ['nothing', { spec: {} }, ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified']],
  ['an address as host', { 'spec.rules.0.host': '10.0.0.1' }, ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address']],
  ['a bad host', { 'spec.rules.0.host': 'A' }, [`spec.rules[0].host: Invalid value: "A": ${subdomain}`]],
  ['a wildcard host', { 'spec.rules.0.host': '*.example.com' }, []],
  ['no paths', { 'spec.rules.0.http.paths': [] }, ['spec.rules[0].http.paths: Required value']],
  ['no path type', { [`${firstPath}.pathType`]: undefined }, [`${at}.pathType: Required value: pathType must be specified`]],
  [
    'an unknown path type',
    { [`${firstPath}.pathType`]: 'Regex' },
    [`${at}.pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"`],
  ],
  ['a relative path', { [`${firstPath}.path`]: 'a' }, [`${at}.path: Invalid value: "a": must be an absolute path`]],
  ['an implementation’s own path may be absent', { [`${firstPath}.path`]: undefined, [`${firstPath}.pathType`]: 'ImplementationSpecific' }, []],
  ['double slashes', { [`${firstPath}.path`]: '/a//b' }, [`${at}.path: Invalid value: "/a//b": must not contain '//'`]],
  ['an encoded slash', { [`${firstPath}.path`]: '/a%2Fb' }, [`${at}.path: Invalid value: "/a%2Fb": must not contain '%2F'`]],
  ['dots at the end', { [`${firstPath}.path`]: '/a/..' }, [`${at}.path: Invalid value: "/a/..": cannot end with '/..'`]],
  ['no backend', { [`${firstPath}.backend`]: {} }, [`${at}.backend: Invalid value: "": resource or service backend is required`]],
  [
    'two backends',
    { [`${firstPath}.backend.resource`]: { kind: 'A', name: 'b' } },
    [`${at}.backend: Invalid value: "": cannot set both resource and service backends`],
  ],
  ['a resource backend', { [`${firstPath}.backend`]: { resource: { apiGroup: 'a.b', kind: 'A', name: 'b' } } }, []],
  ['a resource backend without a kind', { [`${firstPath}.backend`]: { resource: { kind: '', name: 'b' } } }, [`${at}.backend.resource.kind: Required value`]],
  ['no service name', { [`${firstPath}.backend.service.name`]: '' }, [`${at}.backend.service.name: Required value`]],
  ['a service whose name begins with a digit', { [`${firstPath}.backend.service.name`]: '1-web' }, []],
  [
    'a port by name and number',
    { [`${firstPath}.backend.service.port`]: { name: 'http', number: 80 } },
    [`${at}.backend: Invalid value: "": cannot set both port name & port number`],
  ],
  ['no port', { [`${firstPath}.backend.service.port`]: {} }, [`${at}.backend: Required value: port name or number is required`]],
  [
    'a port too high',
    { [`${firstPath}.backend.service.port`]: { number: 70000 } },
    [`${at}.backend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive`],
  ],
  ['a bad TLS secret', { 'spec.tls': [{ hosts: ['a.b'], secretName: 'A' }] }, [`spec.tls[0].secretName: Invalid value: "A": ${subdomain}`]],
  ['a bad TLS host', { 'spec.tls': [{ hosts: ['A'] }] }, [`spec.tls[0].hosts[0]: Invalid value: "A": ${subdomain}`]],
  ['a bad class', { 'spec.ingressClassName': 'A' }, [`spec.ingressClassName: Invalid value: "A": ${subdomain}`]],
  [
    'two classes',
    { 'spec.ingressClassName': 'a', 'metadata.annotations': { 'kubernetes.io/ingress.class': 'b' } },
    ['annotations.kubernetes.io/ingress.class: Invalid value: "b": must match `ingressClassName` when both are specified'],
  ],
])
onIngress.update([
  ['an old bad secret name may stay', {}, [], { 'spec.tls': [{ secretName: 'A' }] }],
  ['a new one may not come', { 'spec.tls': [{ secretName: 'A' }] }, [`spec.tls[0].secretName: Invalid value: "A": ${subdomain}`]],
  ['old rules below a wildcard may stay', { 'metadata.labels': { a: 'b' } }, [], { 'spec.rules.0.host': '*.b.com', [`${firstPath}.path`]: 'x' }],
])
onIngress.subresource('status', [
  ['an address', { 'status.loadBalancer': { ingress: [{ ip: '10.0.0.1' }, { hostname: 'a.b' }] } }, []],
  [
    'a bad address',
    { 'status.loadBalancer': { ingress: [{ ip: 'x' }] } },
    ['status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ],
  [
    'an address as name',
    { 'status.loadBalancer': { ingress: [{ hostname: '10.0.0.1' }] } },
    ['status.loadBalancer.ingress[0].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
  ],
])
onIngress.warnings('the old annotation', { 'metadata.annotations': { 'kubernetes.io/ingress.class': 'b' } }, [
  'annotation "kubernetes.io/ingress.class" is deprecated, please use \'spec.ingressClassName\' instead',
])
onIngress.cells(
  'many hosts',
  { 'spec.rules': [{}, { host: 'a' }, { host: 'b' }, { host: 'c' }, { host: 'd' }], 'status.loadBalancer': { ingress: [{ ip: '1.1.1.1' }] } },
  { Name: 'web', Class: '<none>', Hosts: 'a,b,c + 2 more...', Address: '1.1.1.1', Ports: '80' },
)

const goodClass: IngressClass = {
  apiVersion,
  kind: 'IngressClass',
  metadata: { name: 'nginx' },
  spec: { controller: 'example.com/controller', parameters: { apiGroup: 'a.b', kind: 'Config', name: 'c' } },
}
const onClass = kindRules('EXP-04', ingressClass, goodClass)
onClass.defaults('parameters are cluster-wide', {}, { 'spec.parameters.scope': 'Cluster' })
onClass.create([
  ['no controller', { 'spec.controller': '' }, ['spec.controller: Required value']],
  [
    'a controller without a domain',
    { 'spec.controller': 'nginx' },
    ['spec.controller: Invalid value: "nginx": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
  ['a long controller', { 'spec.controller': `a.b/${'c'.repeat(250)}` }, ['spec.controller: Too long: may not be more than 250 bytes']],
  ['no kind', { 'spec.parameters.kind': '' }, ['spec.parameters.kind: Required value']],
  [
    'a namespace of something cluster-wide',
    { 'spec.parameters.namespace': 'a' },
    ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
  ],
  [
    'no namespace where one is needed',
    { 'spec.parameters.scope': 'Namespace' },
    ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
  ],
  ['an unknown scope', { 'spec.parameters.scope': 'Galaxy' }, ['spec.parameters.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespace"']],
])
onClass.update([['another controller', { 'spec.controller': 'a.b/c' }, ['spec.controller: Invalid value: "a.b/c": field is immutable']]])
onClass.cells('parameters', {}, { Name: 'nginx', Controller: 'example.com/controller', Parameters: 'Config.a.b/c' })

const goodPolicy: NetworkPolicy = {
  apiVersion,
  kind: 'NetworkPolicy',
  metadata: { name: 'p', namespace: 'default' },
  spec: { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [{ protocol: 'TCP', port: 80 }], from: [{ podSelector: {} }] }] },
}
const onPolicy = kindRules('EXP-04', networkPolicy, goodPolicy)
const port = 'spec.ingress[0].ports[0]'
const peer = 'spec.ingress[0].from[0]'
onPolicy.defaults(
  'ingress only',
  { 'spec.policyTypes': undefined, 'spec.ingress.0.ports.0.protocol': undefined },
  {
    'spec.policyTypes': ['Ingress'],
    'spec.ingress.0.ports.0.protocol': 'TCP',
  },
)
onPolicy.defaults('egress rules add a type', { 'spec.policyTypes': undefined, 'spec.egress': [{}] }, { 'spec.policyTypes': ['Ingress', 'Egress'] })
onPolicy.create([
  ['a good one', {}, []],
  [
    'an unknown protocol',
    { 'spec.ingress.0.ports.0.protocol': 'ICMP' },
    [`${port}.protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"`],
  ],
  ['port 0', { 'spec.ingress.0.ports.0.port': 0 }, [`${port}.port: Invalid value: 0: must be between 1 and 65535, inclusive`]],
  ['a bad port name', { 'spec.ingress.0.ports.0.port': '80' }, [`${port}.port: Invalid value: "80": must contain at least one letter (a-z)`]],
  [
    'an end without a port',
    { 'spec.ingress.0.ports.0': { endPort: 90 } },
    [`${port}.endPort: Invalid value: 90: may not be specified when \`port\` is not specified`],
  ],
  [
    'an end of a named port',
    { 'spec.ingress.0.ports.0': { port: 'a', endPort: 90 } },
    [`${port}.endPort: Invalid value: 90: may not be specified when \`port\` is non-numeric`],
  ],
  ['an end before the port', { 'spec.ingress.0.ports.0.endPort': 70 }, [`${port}.endPort: Invalid value: 70: must be greater than or equal to \`port\``]],
  ['an end too high', { 'spec.ingress.0.ports.0.endPort': 70000 }, [`${port}.endPort: Invalid value: 70000: must be between 1 and 65535, inclusive`]],
  ['an empty peer', { 'spec.ingress.0.from.0': {} }, [`${peer}: Required value: must specify a peer`]],
  [
    'an ipBlock next to a selector',
    { 'spec.ingress.0.from.0': { podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } } },
    [`${peer}: Forbidden: may not specify both ipBlock and another peer`],
  ],
  ['a block without a CIDR', { 'spec.ingress.0.from.0': { ipBlock: { cidr: '' } } }, [`${peer}.ipBlock.cidr: Required value`]],
  [
    'a bad block',
    { 'spec.ingress.0.from.0': { ipBlock: { cidr: 'x' } } },
    [`${peer}.ipBlock.cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`],
  ],
  [
    'an exception outside',
    { 'spec.ingress.0.from.0': { ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } } },
    [`${peer}.ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of \`cidr\``],
  ],
  [
    'an exception as wide',
    { 'spec.ingress.0.from.0': { ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/8'] } } },
    [`${peer}.ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of \`cidr\``],
  ],
  ['an unknown type', { 'spec.policyTypes': ['Both'] }, ['spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"']],
  [
    'three types',
    { 'spec.policyTypes': ['Ingress', 'Egress', 'Ingress'] },
    ['spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes'],
  ],
])
onPolicy.update([
  ['an old block with host bits may stay', { 'metadata.labels': { a: 'b' } }, [], { 'spec.ingress.0.from.0': { ipBlock: { cidr: '10.0.0.1/8' } } }],
  [
    'a new one may not come',
    { 'spec.ingress.0.from.0': { ipBlock: { cidr: '10.0.0.1/8' } } },
    [`${peer}.ipBlock.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length`],
  ],
])
onPolicy.warnings('a spelling of IPv6', { 'spec.ingress.0.from.0': { ipBlock: { cidr: '2001:DB8::/32' } } }, [
  `${peer}.ipBlock.cidr: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")`,
])

const goodCidr: ServiceCIDR = { apiVersion, kind: 'ServiceCIDR', metadata: { name: 'more' }, spec: { cidrs: ['10.97.0.0/24'] }, status: {} }
const onCidr = kindRules('EXP-04', serviceCidr, goodCidr)
onCidr.create([
  ['a good one', {}, []],
  ['both families', { 'spec.cidrs': ['10.97.0.0/24', 'fd00::/112'] }, []],
  ['none', { 'spec.cidrs': [] }, ['spec.cidrs: Required value: at least one CIDR required']],
  [
    'three',
    { 'spec.cidrs': ['10.0.0.0/24', '10.0.1.0/24', '10.0.2.0/24'] },
    ['spec.cidrs: Invalid value: {"cidrs":["10.0.0.0/24","10.0.1.0/24","10.0.2.0/24"]}: may only hold up to 2 values'],
  ],
  ['host bits', { 'spec.cidrs': ['10.97.0.1/24'] }, ['spec.cidrs[0]: Invalid value: "10.97.0.1/24": must not have bits set beyond the prefix length']],
  [
    'two of one family',
    { 'spec.cidrs': ['10.0.0.0/24', '10.0.1.0/24'] },
    ['spec.cidrs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64'],
  ],
])
onCidr.update([
  ['nothing', {}, []],
  ['another range', { 'spec.cidrs': ['10.98.0.0/24'] }, ['spec.cidrs[0]: Invalid value: "10.98.0.0/24": field is immutable']],
  ['a second family', { 'spec.cidrs': ['10.97.0.0/24', 'fd00::/112'] }, []],
  [
    'less',
    { 'spec.cidrs': ['10.97.0.0/24'] },
    ['spec.cidrs: Invalid value: ["10.97.0.0/24"]: field is immutable'],
    { 'spec.cidrs': ['10.97.0.0/24', 'fd00::/112'] },
  ],
])

const goodAddress: IPAddress = {
  apiVersion,
  kind: 'IPAddress',
  metadata: { name: '10.96.0.7' },
  spec: { parentRef: { group: '', resource: 'services', namespace: 'default', name: 'web' } },
}
const onAddress = kindRules('EXP-04', ipAddress, goodAddress)
onAddress.create([
  ['a good one', {}, []],
  ['no parent', { 'spec.parentRef': undefined }, ['spec.parentRef: Required value']],
  ['a bad group', { 'spec.parentRef.group': 'A' }, [`spec.parentRef.group: Invalid value: "A": ${subdomain}`]],
  ['no resource', { 'spec.parentRef.resource': '' }, ['spec.parentRef.resource: Required value']],
  ['a bad name', { 'spec.parentRef.name': 'a/b' }, ['spec.parentRef.name: Invalid value: "a/b": may not contain \'/\'']],
])
onAddress.update([
  [
    'another parent',
    { 'spec.parentRef.name': 'other' },
    ['spec.parentRef: Invalid value: {"resource":"services","namespace":"default","name":"other"}: field is immutable'],
  ],
])
onAddress.cells('a service', {}, { Name: '10.96.0.7', ParentRef: 'services/default/web' })
test('EXP-04 IPAddress: the name is an address in its canonical form', () => {
  assert.deepEqual(ipAddress.validateName?.('10.0.0.1', false), [])
  assert.deepEqual(ipAddress.validateName?.('2001:DB8::1', false), ['must be in canonical form ("2001:db8::1")'])
  assert.deepEqual(ipAddress.validateName?.('web', false), ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'])
})
