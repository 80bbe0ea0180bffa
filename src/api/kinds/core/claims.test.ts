import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { seededRandom } from '#base/random'
import { changed, kindRules } from '#testing/kindRules'
import type { StrategyContext } from '../defineKind.ts'
import { persistentVolume } from './persistentVolume.ts'
import { persistentVolumeClaim } from './persistentVolumeClaim.ts'

const good: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c', namespace: 'd' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } },
  status: {},
}
const on = kindRules('API-04', persistentVolumeClaim, good)
const beta = 'volume.beta.kubernetes.io/storage-class'
const bound = { 'status.phase': 'Bound', 'status.capacity': { storage: '1Gi' } }
const fixed = 'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n'
const named = (name: string) => ({ metadata: { name: 'c', namespace: 'd', annotations: { [beta]: name } } })

on.create([
  [
    'no modes come first',
    { 'spec.accessModes': [], 'spec.selector': { matchLabels: { a: '-' } } },
    [
      'spec.accessModes: Required value: at least 1 access mode is required',
      "spec.selector.matchLabels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  ],
])
on.update([
  ['the class is filled in', { 'spec.storageClassName': 'fast' }, []],
  ['the class moves from the annotation', { ...named('fast'), 'spec.storageClassName': 'fast' }, [], named('fast')],
  ['the class is not what the annotation says', { 'spec.storageClassName': 'slow' }, [fixed], named('fast')],
  ['the annotation', named('slow'), [`metadata.annotations.${beta}: Invalid value: "slow": field is immutable`], named('fast')],
  ['another request than storage', { 'spec.resources.requests': { storage: '2Gi', other: '1' } }, [fixed], bound],
  ['an attributes class of a bound claim', { 'spec.volumeAttributesClassName': 'gold' }, [], bound],
  ['an attributes class of a claim that waits', { 'spec.volumeAttributesClassName': 'gold' }, [fixed]],
  [
    'an attributes class taken back before it was applied',
    { 'spec.volumeAttributesClassName': undefined },
    [],
    { ...bound, 'spec.volumeAttributesClassName': 'gold' },
  ],
  [
    'an attributes class taken away',
    { 'spec.volumeAttributesClassName': undefined },
    ['spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is not nil'],
    { ...bound, 'spec.volumeAttributesClassName': 'gold', 'status.currentVolumeAttributesClassName': 'gold' },
  ],
  [
    'an attributes class emptied',
    { 'spec.volumeAttributesClassName': '' },
    ['spec.volumeAttributesClassName: Forbidden: update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil'],
    { ...bound, 'spec.volumeAttributesClassName': 'gold', 'status.currentVolumeAttributesClassName': 'gold' },
  ],
])
const states = '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"'
on.subresource('status', [
  ['fine', { 'status.allocatedResourceStatuses': { storage: 'NodeResizePending', 'example.com/x': 'NodeResizePending' } }, []],
  [
    'an unknown state',
    { 'status.allocatedResourceStatuses': { storage: 'Odd' } },
    [`status.allocatedResourceStatuses: Unsupported value: "storage": supported values: ${states}`],
  ],
  [
    'resources that claims do not count',
    { 'status.allocatedResourceStatuses': { cpu: 'NodeResizePending' }, 'status.allocatedResources': { cpu: '1' } },
    [
      'status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"',
      'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
    ],
  ],
  ['a negative size', { 'status.capacity': { storage: '-1' } }, ['status.capacity[storage]: Invalid value: -1: must be a valid resource quantity']],
])
on.warnings('the annotation of old', named('fast'), [`metadata.annotations[${beta}]: deprecated since v1.8; use "storageClassName" attribute instead`])

const path = FieldPath.of()
const at = (nowMs: number): StrategyContext => ({ nowMs, random: seededRandom(1) })
const claim = { kind: 'PersistentVolumeClaim', name: 'x' }
const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'x' }
const own = { apiGroup: 'example.com', kind: 'Book', name: 'x' }
const sources: [name: string, given: object, want: object, old?: object][] = [
  ['a claim, by the old spelling', { dataSource: claim }, { dataSource: claim, dataSourceRef: claim }],
  ['a snapshot, by the new spelling', { dataSourceRef: snapshot }, { dataSource: snapshot, dataSourceRef: snapshot }],
  ['what the old spelling does not take is dropped', { dataSource: own }, {}],
  ['what the new spelling takes is in both', { dataSourceRef: own }, { dataSource: own, dataSourceRef: own }],
  ['a source in another namespace is dropped', { dataSourceRef: { ...claim, namespace: 'e' } }, {}],
  ['an update by the old spelling', { dataSource: own }, { dataSource: own, dataSourceRef: own }, { dataSource: own, dataSourceRef: own }],
]
for (const [name, given, want, old] of sources) {
  test(`API-05 PersistentVolumeClaim: data sources: ${name}`, () => {
    const obj = changed(good, Object.fromEntries(Object.entries(given).map(([field, value]) => [`spec.${field}`, value])))
    if (old) persistentVolumeClaim.prepareForUpdate?.({ obj, old: { ...good, spec: { ...good.spec, ...old } }, path, context: at(0) })
    else persistentVolumeClaim.prepareForCreate?.({ obj, path, context: at(0) })
    assert.deepEqual(obj.spec, { ...good.spec, ...want })
  })
}

test('API-05 PersistentVolume: the time of the last change of phase', () => {
  const obj = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'v' }, spec: {} } as PersistentVolume
  persistentVolume.prepareForCreate?.({ obj, path, context: at(0) })
  assert.deepEqual(obj.status, { phase: 'Pending', lastPhaseTransitionTime: '1970-01-01T00:00:00Z' })
  const write = (status: PersistentVolume['status'], nowMs: number) => {
    const next = { ...obj, status: { ...status } } as PersistentVolume
    persistentVolume.status?.prepareForUpdate?.({ obj: next, old: obj, path, context: at(nowMs) })
    return next.status?.lastPhaseTransitionTime
  }
  assert.equal(write({ phase: 'Pending' }, 60_000), '1970-01-01T00:00:00Z', 'the same phase keeps it')
  assert.equal(write({ phase: 'Available' }, 60_000), '1970-01-01T00:01:00Z', 'another phase gets the present')
  assert.equal(write({ ...obj.status, phase: 'Available' }, 60_000), '1970-01-01T00:01:00Z', 'also where the old time was sent back')
  assert.equal(write({ phase: 'Available', lastPhaseTransitionTime: '1970-01-01T00:00:30Z' }, 60_000), '1970-01-01T00:00:30Z', 'who says one is believed')
})
