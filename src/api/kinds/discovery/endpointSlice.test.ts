import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { seededRandom } from '#base/random'
import { changed, kindRules } from '#testing/kindRules'
import { endpointSlice } from './endpointSlice.ts'

const good: EndpointSlice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 's', namespace: 'd' },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.1'] }],
  ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
}
const on = kindRules('EXP-04', endpointSlice, good)
const at = 'endpoints[0]'
on.defaults('ports', { 'ports.0': { port: 80 } }, { 'ports.0': { port: 80, name: '', protocol: 'TCP' } })
on.create([
  ['a good one', {}, []],
  ['no type', { addressType: '' }, ['addressType: Required value']],
  ['an unknown type', { addressType: 'IP' }, ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"']],
  ['no address', { 'endpoints.0.addresses': [] }, [`${at}.addresses: Required value: must contain at least 1 address`]],
  [
    'too many endpoints',
    { endpoints: Array.from({ length: 1001 }, () => ({ addresses: ['10.0.0.1'] })) },
    ['endpoints: Too many: 1001: must have at most 1000 items'],
  ],
  ['leading zeros', { 'endpoints.0.addresses.0': '010.0.0.1' }, [`${at}.addresses[0]: Invalid value: "010.0.0.1": must not have leading 0s`]],
  ['the other family', { 'endpoints.0.addresses.0': 'fd00::1' }, [`${at}.addresses[0]: Invalid value: "fd00::1": must be an IPv4 address`]],
  [
    'a name that is none',
    { addressType: 'FQDN', 'endpoints.0.addresses.0': 'web' },
    [`${at}.addresses[0]: Invalid value: "web": should be a domain with at least two segments separated by dots`],
  ],
  ['a bad port name', { 'ports.0.name': 'a.b' }, ['ports[0].name: Invalid value: "a.b": must not contain dots']],
  ['a port name twice', { 'ports.1': { name: 'http', protocol: 'UDP' } }, ['ports[1].name: Duplicate value: "http"']],
  ['an unknown protocol', { 'ports.0.protocol': 'ICMP' }, ['ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"']],
  ['a zone twice', { 'endpoints.0.hints': { forZones: [{ name: 'a' }, { name: 'a' }] } }, [`${at}.hints.forZones[1].name: Duplicate value: "a"`]],
  [
    'too many nodes',
    { 'endpoints.0.hints': { forNodes: Array.from({ length: 9 }, (_, i) => ({ name: `n${i}` })) } },
    [`${at}.hints.forNodes: Too many: 9: must have at most 8 items`],
  ],
])
on.update([
  ['another type', { addressType: 'IPv6', endpoints: [] }, ['addressType: Invalid value: "IPv6": field is immutable']],
  ['old addresses may stay', { 'metadata.labels': { a: 'b' } }, [], { 'endpoints.0.addresses.0': '010.0.0.1' }],
])
on.warnings('a spelling of IPv6', { addressType: 'IPv6', 'endpoints.0.addresses.0': 'FD00::1' }, [
  `${at}.addresses[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")`,
])
on.cells(
  'many endpoints',
  { 'endpoints.0.addresses': ['1.1.1.1', '2.2.2.2', '3.3.3.3', '4.4.4.4'] },
  {
    Name: 's',
    AddressType: 'IPv4',
    Ports: '80',
    Endpoints: '1.1.1.1,2.2.2.2,3.3.3.3 + 1 more...',
  },
)

on.create([
  [
    'faults in the order of type, endpoints and ports',
    { addressType: 'IP', 'endpoints.0.addresses': [], 'ports.0.protocol': 'ICMP' },
    [
      'addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"',
      `${at}.addresses: Required value: must contain at least 1 address`,
      'ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ],
  ],
])
on.warnings('names', { addressType: 'FQDN', 'endpoints.0.addresses.0': 'web.example.com' }, ['spec.addressType: FQDN endpoints are deprecated'])
on.warnings(
  'nothing of the controller',
  {
    'metadata.labels': { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' },
    addressType: 'IPv6',
    'endpoints.0.addresses.0': 'FD00::1',
  },
  [],
)

test('EXP-04 EndpointSlice: a node that only the topology of older versions names is kept', () => {
  const old = changed(good, { 'endpoints.0.deprecatedTopology': { 'kubernetes.io/hostname': 'n1' } })
  const write = (node: string) => {
    const obj = changed(old, { 'endpoints.0.deprecatedTopology': { 'kubernetes.io/hostname': node }, 'endpoints.0.hostname': 'h' })
    endpointSlice.prepareForUpdate?.({ obj, old, path: FieldPath.of(), context: { nowMs: 0, random: seededRandom(1) } })
    return obj.endpoints?.[0]
  }
  assert.deepEqual(write('n1'), { addresses: ['10.0.0.1'], hostname: 'h', nodeName: 'n1' })
  assert.deepEqual(write('n2'), { addresses: ['10.0.0.1'], hostname: 'h' }, 'another one is not taken from there')
})

test('EXP-04 EndpointSlice: topology of older versions is dropped from what is written', () => {
  const obj = changed(good, { 'endpoints.0.deprecatedTopology': { a: 'b' } })
  endpointSlice.prepareForCreate?.({ obj, path: FieldPath.of(), context: { nowMs: 0, random: seededRandom(1) } })
  assert.equal(obj.endpoints?.[0]?.deprecatedTopology, undefined)
})
