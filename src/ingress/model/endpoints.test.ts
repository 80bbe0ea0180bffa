import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service } from '#api/gen/types/core.v1'
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { endpointsOf } from './endpoints.ts'

const service = (spec: object = {}) =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's' },
    spec: {
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
      ...spec,
    },
  }) as Service
const slice = (endpoints: Endpoint[], ports: object[] = [{ name: 'http', port: 8080 }]) =>
  ({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { name: 'x' }, addressType: 'IPv4', endpoints, ports }) as EndpointSlice
const at = (ip: string, conditions: Endpoint['conditions'] = {}): Endpoint => ({ addresses: [ip], conditions })
const leaving = { ready: false, serving: true, terminating: true }
const addresses = (slices: EndpointSlice[], port: number | string = 80, spec: object = {}) =>
  endpointsOf(service(spec), slices, port).map((one) => `${one.ip}:${one.port}`)

const cases = [
  {
    name: 'ready endpoints of all slices, each once',
    got: addresses([slice([at('10.0.0.2'), at('10.0.0.1')]), slice([at('10.0.0.1')])]),
    want: ['10.0.0.1:8080', '10.0.0.2:8080'],
  },
  { name: 'a port by its name', got: addresses([slice([at('10.0.0.1')])], 'http'), want: ['10.0.0.1:8080'] },
  { name: 'no endpoint that ends while one is ready', got: addresses([slice([at('10.0.0.1', leaving), at('10.0.0.2')])]), want: ['10.0.0.2:8080'] },
  {
    name: 'endpoints that serve while they end, when none is ready',
    got: addresses([slice([at('10.0.0.1', leaving), at('10.0.0.2', { ready: false })])]),
    want: ['10.0.0.1:8080'],
  },
  { name: 'nothing for a port that the Service does not have', got: addresses([slice([at('10.0.0.1')])], 81), want: [] },
  { name: 'nothing for a port of UDP', got: addresses([slice([at('10.0.0.1')], [{ name: 'dns', port: 53, protocol: 'UDP' }])], 53), want: [] },
  { name: 'nothing for a Service of type ExternalName', got: addresses([slice([at('10.0.0.1')])], 80, { type: 'ExternalName' }), want: [] },
  {
    name: 'no loopback, unspecified or link-local address, and no text that is none',
    got: addresses([
      slice(['127.0.0.1', '0.0.0.0', '169.254.169.254', '224.0.0.1', '::1', 'fe80::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', 'localhost'].map((ip) => at(ip))),
    ]),
    want: [],
  },
  {
    name: 'no endpoint of an API server',
    got: endpointsOf(service(), [slice([at('10.0.0.1'), at('10.0.0.2')])], 80, [slice([at('10.0.0.1')], [{ name: 'https', port: 8080 }])]),
    want: [{ ip: '10.0.0.2', port: 8080 }],
  },
]
for (const { name, got, want } of cases) test(`ING-02 a backend has ${name}`, () => assert.deepEqual(got, want))
