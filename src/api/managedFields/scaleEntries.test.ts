import assert from 'node:assert/strict'
import test from 'node:test'
import type { ManagedFieldsEntry } from '../machinery/meta.ts'
import { toParentEntries, toScaleEntries } from './scaleEntries.ts'

const time = '2026-01-01T00:00:00Z'
const paths = new Map([
  ['apps/v1', 'spec.replicas'],
  ['apps/v2', '.spec.size'],
  ['apps/v3', undefined],
])

function entry(manager: string, operation: 'Apply' | 'Update', apiVersion: string, spec: readonly string[], subresource = ''): ManagedFieldsEntry {
  const fieldsV1 = { 'f:spec': Object.fromEntries(spec.map((name) => [`f:${name}`, {}])) }
  return { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1, ...(subresource ? { subresource } : {}) }
}

test('API-11 a Scale shows the managers that own the replicas, under the field name of each version', () => {
  const parent = [
    entry('a', 'Apply', 'apps/v1', ['replicas', 'paused']),
    entry('b', 'Apply', 'apps/v2', ['size']),
    entry('c', 'Apply', 'apps/v3', ['replicas']),
    entry('d', 'Apply', 'apps/unknown', ['replicas']),
    entry('e', 'Update', 'apps/v1', ['paused']),
  ]
  assert.deepEqual(toScaleEntries(parent, paths), [entry('a', 'Apply', 'autoscaling/v1', ['replicas']), entry('b', 'Apply', 'autoscaling/v1', ['replicas'])])
})

const kept = entry('a', 'Update', 'apps/v1', ['replicas', 'paused'])
const cases: readonly { name: string; parent: ManagedFieldsEntry[]; scale: ManagedFieldsEntry[]; want: ManagedFieldsEntry[] }[] = [
  { name: 'no change of owners', parent: [kept], scale: [entry('a', 'Update', 'autoscaling/v1', ['replicas'])], want: [kept] },
  {
    name: 'another manager takes the replicas',
    parent: [kept],
    scale: [entry('b', 'Update', 'autoscaling/v1', ['replicas'], 'scale')],
    want: [entry('a', 'Update', 'apps/v1', ['paused']), entry('b', 'Update', 'apps/v1', ['replicas'], 'scale')],
  },
  { name: 'a manager without other fields is dropped', parent: [entry('a', 'Apply', 'apps/v2', ['size'])], scale: [], want: [] },
  {
    name: 'a version without a scale keeps what it has',
    parent: [entry('a', 'Apply', 'apps/v3', ['replicas'])],
    scale: [],
    want: [entry('a', 'Apply', 'apps/v3', ['replicas'])],
  },
  { name: 'an entry of an unknown version is dropped', parent: [entry('a', 'Apply', 'apps/unknown', ['x'])], scale: [], want: [] },
  {
    name: 'other fields of the Scale are ignored',
    parent: [],
    scale: [entry('a', 'Apply', 'autoscaling/v1', ['other'])],
    want: [],
  },
]
for (const { name, parent, scale, want } of cases) {
  test(`API-11 a write of a Scale changes the object's entries: ${name}`, () => assert.deepEqual(toParentEntries(parent, scale, paths, 'apps/v1'), want))
}
