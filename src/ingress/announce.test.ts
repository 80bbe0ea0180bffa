import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { announce } from './announce.ts'

for (const [nodeAddress, addressType] of [
  ['10.88.0.10', 'IPv4'],
  ['fd53:4b00:7:1::a', 'IPv6'],
] as const)
  test(`NET-08 a node with the address ${nodeAddress} is an endpoint of the ingress in a slice of ${addressType}`, async () => {
    const slices: EndpointSlice[] = []
    const client = { of: () => ({ patch: async (_key: unknown, _type: string, slice: EndpointSlice) => void slices.push(slice) }) } as never
    const deps = { client, clock: new VirtualClock(), log: noLog }
    await announce(deps, { nodeName: 'n', nodeAddress }, { service: 'ingress', ports: [{ name: 'http', port: 80 }] }, new AbortController().signal)
    assert.deepEqual(
      slices.map((slice) => [slice.addressType, slice.endpoints?.map(({ addresses }) => addresses)]),
      [[addressType, [[nodeAddress]]]],
    )
  })
