import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '#api/gen/types/coordination.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { seededRandom } from '#base/random'
import { changed, kindRules } from '#testing/kindRules'
import { lease } from './lease.ts'

const good: Lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l', namespace: 'd' }, spec: { holderIdentity: 'a' } }
const on = kindRules('EXP-04', lease, good)
on.create([
  ['a good one', {}, []],
  ['no duration', { 'spec.leaseDurationSeconds': 0 }, ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0']],
  ['fewer transitions than none', { 'spec.leaseTransitions': -1 }, ['spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0']],
])
on.cells('the holder', {}, { Name: 'l', Holder: 'a' })

test('EXP-04 Lease: what only coordinated leader election knows is dropped while its gate is off', () => {
  const obj = changed(good, { 'spec.strategy': 'OldestEmulationVersion', 'spec.preferredHolder': 'b' })
  lease.prepareForCreate?.({ obj, path: FieldPath.of(), context: { nowMs: 0, random: seededRandom(1) } })
  assert.deepEqual(obj.spec, good.spec)
})
