import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Endpoints } from '#api/gen/types/core.v1'
import { addressesOf, endpointPort, withOwnAddress } from './endpointAddresses.ts'
import { kubernetesEndpointSlice, kubernetesEndpoints } from './objects.ts'

test('HA-01 a counted server adds itself, and removes the addresses after its own when there are too many', () => {
  assert.deepEqual(withOwnAddress([], 'b', 1), ['b'])
  assert.deepEqual(withOwnAddress(['a', 'c'], 'b', 3), ['a', 'b', 'c'])
  assert.deepEqual(withOwnAddress(['a', 'c'], 'b', 2), ['a', 'b'])
  assert.deepEqual(withOwnAddress(['a', 'b'], 'c', 2), ['b', 'c'])
  assert.deepEqual(withOwnAddress(['a', 'b', 'c'], 'b', 2), ['a', 'b'])
})

test('HA-01 the port of the other servers stays, unless this server decides or the object has another form', () => {
  const written = kubernetesEndpoints(['192.0.2.1'], 6443)
  assert.deepEqual(addressesOf(written), ['192.0.2.1'])
  assert.deepEqual([endpointPort(written, 7443, false), endpointPort(written, 7443, true)], [6443, 7443])
  const [subset] = written.subsets ?? []
  const other = { ...written, subsets: [subset, subset] } as Endpoints
  assert.deepEqual([addressesOf(other), endpointPort(other, 7443, false), endpointPort(undefined, 7443, false)], [[], 7443, 7443])
})

test('HA-01 a slice has the addresses of one family: IPv6 only if all are', () => {
  const shown = (addresses: readonly string[]) => {
    const { addressType, endpoints = [], ports } = kubernetesEndpointSlice(addresses, 6443)
    return [addressType, (endpoints ?? []).flatMap((endpoint) => endpoint.addresses), ports?.length]
  }
  assert.deepEqual(shown(['192.0.2.1', '2001:db8::1']), ['IPv4', ['192.0.2.1'], 1])
  assert.deepEqual(shown(['2001:db8::1']), ['IPv6', ['2001:db8::1'], 1])
  assert.deepEqual(shown([]), ['IPv4', [], 0])
})
