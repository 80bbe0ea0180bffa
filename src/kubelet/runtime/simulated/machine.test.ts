import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulatedNodeAddress } from './machine.ts'

const cases = [
  [1, '198.18.0.1'],
  [256, '198.18.1.0'],
  [65_536, '198.19.0.0'],
  [131_071, '198.19.255.255'],
] as const
for (const [index, want] of cases) {
  test(`X2 simulated node ${index} has the address ${want}`, () => assert.equal(simulatedNodeAddress(index), want))
}
