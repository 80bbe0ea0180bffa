import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IPAddress, ServiceCIDR } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'
import { isNeeded } from './serviceCidr.ts'

const range = (name: string, cidrs: string[], deletionTimestamp?: string): Frozen<ServiceCIDR> => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'ServiceCIDR',
  metadata: { name, ...(deletionTimestamp ? { deletionTimestamp } : {}) },
  spec: { cidrs },
  status: {},
})
const address = (name: string): Frozen<IPAddress> => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IPAddress',
  metadata: { name },
  spec: {} as IPAddress['spec'],
})
const gone = range('old', ['10.0.0.0/24', 'fd00::/112'], '2026-01-01T00:00:00Z')

const cases: readonly [string, readonly Frozen<ServiceCIDR>[], readonly string[], boolean][] = [
  ['a range without an address in use', [], ['10.1.0.1'], false],
  ['an address of it is in use', [], ['10.0.0.9'], true],
  ['an address of its second family is in use', [], ['fd00::9'], true],
  ['another range has that address', [range('part', ['10.0.0.0/28'])], ['10.0.0.9'], false],
  ['another range has one of two addresses', [range('part', ['10.0.0.0/28'])], ['10.0.0.9', '10.0.0.99'], true],
  ['wider ranges replace it', [range('wide', ['10.0.0.0/16', 'fd00::/64'])], ['10.0.0.9', 'fd00::9'], false],
  ['the other range is going, too', [range('part', ['10.0.0.0/16'], '2026-01-01T00:00:00Z')], ['10.0.0.9'], true],
]
for (const [name, more, addresses, want] of cases)
  test(`SVC-01 a service range is kept while it is needed: ${name}`, () => assert.equal(isNeeded(gone, [gone, ...more], addresses.map(address)), want))
