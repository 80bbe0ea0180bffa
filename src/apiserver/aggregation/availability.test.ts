import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { APIService } from '#api/gen/types/apiregistration.v1'
import { seededRandom } from '#base/random'
import type { ObjectReader } from '../core/objectReader.ts'
import { objectsAgainst, withAvailability } from './availability.ts'
import { resolveService } from './serviceResolver.ts'

const apiService = { spec: { service: { namespace: 'ns', name: 'svc', port: 443 } } } as APIService

const service = (spec: object) => ({ metadata: { namespace: 'ns', name: 'svc' }, spec })
const clusterIp = service({ type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] })
const slice = (endpoints: readonly object[], ports: readonly object[] = [{ name: 'https', port: 8443 }]) => ({
  metadata: { namespace: 'ns', name: 'svc-1', labels: { 'kubernetes.io/service-name': 'svc' } },
  endpoints,
  ports,
})

function readerOf(found: object | undefined, slices: readonly object[] = []): ObjectReader {
  return { get: () => found, list: () => slices, onChange: () => () => undefined } as unknown as ObjectReader
}

const cases = [
  { name: 'no service', reader: readerOf(undefined), want: ['ServiceNotFound', 'service/svc in "ns" is not present'] },
  {
    name: 'another port',
    reader: readerOf(service({ type: 'ClusterIP', ports: [{ port: 80 }] })),
    want: ['ServicePortError', 'service/svc in "ns" is not listening on port 443'],
  },
  { name: 'no slices', reader: readerOf(clusterIp), want: ['EndpointsNotFound', 'cannot find endpointslices for service/svc in "ns"'] },
  {
    name: 'no ready endpoint',
    reader: readerOf(clusterIp, [slice([{ addresses: ['10.0.0.1'], conditions: { ready: false } }])]),
    want: ['MissingEndpoints', 'endpointslices for service/svc in "ns" have no addresses with port name "https"'],
  },
  {
    name: 'ready under another port name',
    reader: readerOf(clusterIp, [slice([{ addresses: ['10.0.0.1'] }], [{ name: 'http', port: 80 }])]),
    want: ['MissingEndpoints', 'endpointslices for service/svc in "ns" have no addresses with port name "https"'],
  },
  { name: 'ready', reader: readerOf(clusterIp, [slice([{ addresses: ['10.0.0.1'] }])]), want: undefined },
  { name: 'an external name', reader: readerOf(service({ type: 'ExternalName', externalName: 'x' })), want: undefined },
]
for (const { name, reader, want } of cases) {
  test(`API-28 availability of an APIService by its Service and EndpointSlices: ${name}`, () => {
    const found = objectsAgainst(reader, apiService)
    assert.deepEqual(found && [found.reason, found.message], want)
    if (found) assert.equal(found.status, 'False')
  })
}

test('API-28 a service leads to its ready endpoints, or its external name', () => {
  const random = seededRandom(1)
  const reference = { namespace: 'ns', name: 'svc', port: 443 }
  const reader = readerOf(clusterIp, [
    slice([{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.2'] }, { addresses: ['10.0.0.3'], conditions: { ready: false } }]),
  ])
  const hosts = new Set(Array.from({ length: 50 }, () => resolveService(reader, random, reference)).map(({ host, port }) => `${host}:${port}`))
  assert.deepEqual([...hosts].sort(), ['10.0.0.1:8443', '10.0.0.2:8443'])
  assert.deepEqual(resolveService(readerOf(service({ type: 'ExternalName', externalName: 'x.example' })), random, reference), { host: 'x.example', port: 443 })
  assert.throws(() => resolveService(readerOf(undefined), random, reference), { reason: 'NotFound', message: 'service "svc" not found' })
  assert.throws(() => resolveService(readerOf(clusterIp), random, reference), { message: 'no endpoints available for service "svc"' })
})

test('API-28 the condition moves its time only with its status, and is left when nothing changed', () => {
  const no = { status: 'False', reason: 'ServiceNotFound', message: 'm' }
  const first = withAvailability(undefined, no, 't1')
  assert.deepEqual(first, [{ type: 'Available', lastTransitionTime: 't1', ...no }])
  assert.equal(withAvailability(first, no, 't2'), undefined)
  const other = withAvailability(first, { ...no, reason: 'MissingEndpoints' }, 't2')
  assert.deepEqual(other, [{ type: 'Available', lastTransitionTime: 't1', ...no, reason: 'MissingEndpoints' }])
  assert.equal(withAvailability(other, { status: 'True', reason: 'Passed', message: 'x' }, 't3')?.[0]?.lastTransitionTime, 't3')
})
