import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Endpoints } from '#api/gen/types/core.v1'
import { kindRules } from '#testing/kindRules'
import { repackSubsets } from './endpointSubsets.ts'
import { endpoints } from './endpoints.ts'

const good: Endpoints = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'e', namespace: 'd' },
  subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80, protocol: 'TCP' }] }],
}
const on = kindRules('API-04', endpoints, good)
on.create([
  ['a good one', {}, []],
  ['no address', { 'subsets.0.addresses': [] }, ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`']],
  [
    'a loopback address',
    { 'subsets.0.addresses.0.ip': '127.0.0.1' },
    ['subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ],
  ['two ports, one without a name', { 'subsets.0.ports.1': { name: 'b', port: 81 } }, ['subsets[0].ports[0].name: Required value']],
])
on.update([
  ['what was let in before may stay', { 'metadata.labels': { a: 'b' } }, [], { 'subsets.0.addresses.0.ip': '127.0.0.1' }],
  [
    'what is new may not',
    { 'subsets.0.addresses.0.ip': '169.254.0.1' },
    ['subsets[0].addresses[0].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
    { 'subsets.0.addresses.0.ip': '127.0.0.1' },
  ],
])
on.warnings('an address that is spelled oddly', { 'subsets.0.addresses.0.ip': 'FD00::1' }, [
  'subsets[0].addresses[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
])
on.warnings(
  'nothing of the controller',
  { 'metadata.labels': { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' }, 'subsets.0.addresses.0.ip': 'FD00::1' },
  [],
)

const a = { ip: '10.0.0.1' }
const b = { ip: '10.0.0.2' }
const http = { name: 'http', port: 80, protocol: 'TCP' }
const metrics = { name: 'metrics', port: 9090, protocol: 'TCP' }
const layouts: [name: string, given: NonNullable<Endpoints['subsets']>, want: NonNullable<Endpoints['subsets']>][] = [
  [
    'ports of the same addresses together',
    [
      { addresses: [a], ports: [metrics] },
      { addresses: [a], ports: [http] },
    ],
    [{ addresses: [a], ports: [http, metrics] }],
  ],
  [
    'addresses of one port together, sorted, each once',
    [
      { addresses: [b, a], ports: [http] },
      { addresses: [a], ports: [http] },
    ],
    [{ addresses: [a, b], ports: [http] }],
  ],
  ['not ready wins', [{ addresses: [a], notReadyAddresses: [a], ports: [http] }], [{ notReadyAddresses: [a], ports: [http] }]],
  [
    'a port that is on one of two is apart',
    [
      { addresses: [a, b], ports: [http] },
      { addresses: [b], ports: [metrics] },
    ],
    [
      { addresses: [a, b], ports: [http] },
      { addresses: [b], ports: [metrics] },
    ],
  ],
  [
    'two pods of one address are two',
    [
      {
        addresses: [
          { ...a, targetRef: { uid: '2' } },
          { ...a, targetRef: { uid: '1' } },
        ],
        ports: [http],
      },
    ],
    [
      {
        addresses: [
          { ...a, targetRef: { uid: '1' } },
          { ...a, targetRef: { uid: '2' } },
        ],
        ports: [http],
      },
    ],
  ],
  ['without ports', [{ addresses: [b, a] }], [{ addresses: [a, b] }]],
]
for (const [name, given, want] of layouts) test(`API-04 Endpoints are stored in one layout: ${name}`, () => assert.deepEqual(repackSubsets(given), want))
test('API-04 Endpoints are stored in one layout, and storing again changes nothing', () => {
  for (const [, given] of layouts) assert.deepEqual(repackSubsets(repackSubsets(given)), repackSubsets(given))
})
