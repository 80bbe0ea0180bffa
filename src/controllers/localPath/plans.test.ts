/** What the local-path provisioner decides about claims and volumes, without a cluster. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { localPathFinalizer, maxRemovals, removalAnnotation, removalChanges } from '#api/helpers/localPath'
import { awaitsVolume, planVolumeFor } from './provisionPlan.ts'
import { fateOf, nodeNameOf, planRemovals } from './removalPlan.ts'

interface VolumeFacts {
  readonly name?: string
  readonly policy?: string
  readonly phase?: string
  readonly isDeleted?: boolean
  readonly finalizers?: string[]
  readonly provisioner?: string
}

function volumeWith({ name = 'pvc-1', policy = 'Delete', phase = 'Released', isDeleted, finalizers = [localPathFinalizer], provisioner }: VolumeFacts) {
  const annotations = { 'pv.kubernetes.io/provisioned-by': provisioner ?? 'skiff.dev/local-path', 'skiff.dev/local-path-node': 'n1' }
  const metadata = { name, annotations, finalizers, ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) }
  return { metadata, spec: { persistentVolumeReclaimPolicy: policy }, status: { phase } } as unknown as PersistentVolume
}

const fates: readonly (readonly [what: string, facts: VolumeFacts, want: string | undefined])[] = [
  ['a released volume is removed', {}, 'remove'],
  ['a bound volume stays', { phase: 'Bound' }, undefined],
  ['a bound volume stays when a user deletes it', { phase: 'Bound', isDeleted: true }, undefined],
  ['an available volume stays', { phase: 'Available' }, undefined],
  ['an available volume is removed when a user deletes it', { phase: 'Available', isDeleted: true }, 'remove'],
  ['a failed volume is removed when a user deletes it', { phase: 'Failed', isDeleted: true }, 'remove'],
  ['a retained volume stays', { policy: 'Retain' }, undefined],
  ['a retained volume is released when a user deletes it', { policy: 'Retain', isDeleted: true }, 'release'],
  ['a volume without the finalizer is left to its deletion', { isDeleted: true, finalizers: ['other'] }, undefined],
  ['a released volume without the finalizer is removed', { finalizers: [] }, 'remove'],
  ['a volume of another provisioner stays', { provisioner: 'example.com/other' }, undefined],
  ['a volume with another name stays', { name: 'data' }, undefined],
]
for (const [what, facts, want] of fates) test(`STO-05 ${what}`, () => assert.equal(fateOf(volumeWith(facts)), want))

const nodeWith = (requested: readonly string[], uid = 'uid-1') =>
  ({ metadata: { name: 'n1', uid, annotations: removalChanges(requested, []) } }) as unknown as Node
const never = () => false

test('STO-05 a volume is finished when the node that was asked has taken the annotation off, and asked for again on another node of the name', () => {
  const going = ['pvc-1', 'pvc-2', 'pvc-3'].map((name) => volumeWith({ name }))
  const asked = new Map([
    ['pvc-1', 'uid-1'],
    ['pvc-2', 'uid-1'],
  ])
  const { finished, ...plan } = planRemovals(nodeWith(['pvc-2']), going, asked, never)
  assert.deepEqual(
    finished.map(({ metadata }) => metadata.name),
    ['pvc-1'],
  )
  assert.deepEqual(plan, { ask: ['pvc-3'], waiting: ['pvc-2'], withdraw: [] })
  assert.deepEqual(planRemovals(nodeWith([], 'uid-2'), going, asked, never).ask, ['pvc-1', 'pvc-2', 'pvc-3'])
})

test('STO-05 a node gets a bounded number of requests, and room when others are withdrawn', () => {
  const names = Array.from({ length: 2 * maxRemovals }, (_, index) => `pvc-${index}`)
  const going = names.map((name) => volumeWith({ name }))
  assert.equal(planRemovals(nodeWith([]), going, new Map(), never).ask.length, maxRemovals)
  const others = Array.from({ length: maxRemovals - 1 }, (_, index) => `pvc-other-${index}`)
  assert.deepEqual(planRemovals(nodeWith(others), going, new Map(), never).ask, ['pvc-0'])
  const plan = planRemovals(nodeWith(others), going, new Map(), (name) => name === 'pvc-other-0')
  assert.deepEqual([plan.ask, plan.withdraw], [['pvc-0', 'pvc-1'], ['pvc-other-0']])
})

test('STO-05 the node of a volume is known by its annotation, or by its node affinity', () => {
  const annotated = volumeWith({})
  assert.equal(nodeNameOf(annotated), 'n1')
  const { spec, status } = annotated
  const bare = { metadata: { name: 'pvc-1' }, spec, status } as unknown as PersistentVolume
  assert.equal(nodeNameOf(bare), '')
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n2'] }]
  assert.equal(nodeNameOf({ ...bare, spec: { ...spec, nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } } }), 'n2')
})

test('STO-05 a request is an annotation with a valid key', () => {
  const [prefix, name = ''] = removalAnnotation('pvc-2b0d7b3d-3d2b-4b0c-8f8e-7d0b6a1f9c11').split('/')
  assert.equal(prefix, 'local-path.skiff.dev')
  assert.ok(name.length <= 63)
})

const provisioned = { 'volume.kubernetes.io/storage-provisioner': 'skiff.dev/local-path' }
const claimWith = (annotations: Record<string, string>, spec: Partial<PersistentVolumeClaim['spec']> = {}, metadata: object = {}) =>
  ({ metadata: { namespace: 'default', name: 'data', uid: '1', annotations, ...metadata }, spec, status: {} }) as PersistentVolumeClaim

test('STO-06 a claim awaits a volume while it is unbound, not deleted, and given to this provisioner', () => {
  assert.equal(awaitsVolume(claimWith(provisioned)), true)
  assert.equal(awaitsVolume(claimWith({})), false)
  assert.equal(awaitsVolume(claimWith(provisioned, { volumeName: 'pv' })), false)
  assert.equal(awaitsVolume(claimWith(provisioned, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })), false)
})

test('STO-05 STO-06 objects without a spec, which another program may have put into the store, are judged too', () => {
  const { metadata } = volumeWith({ isDeleted: true })
  assert.equal(fateOf({ metadata } as PersistentVolume), 'release')
  assert.equal(awaitsVolume({ metadata: { annotations: provisioned } } as unknown as PersistentVolumeClaim), true)
})

test('STO-06 a volume can be reached from nodes with the host name of the selected one', () => {
  const claim = claimWith({ ...provisioned, 'volume.kubernetes.io/selected-node': 'n1' }, { accessModes: ['ReadWriteOncePod'] })
  const storageClass = { metadata: { name: 'standard' }, provisioner: 'skiff.dev/local-path', reclaimPolicy: 'Retain' } as StorageClass
  const hostOf = (labels: Record<string, string>) => {
    const plan = planVolumeFor(claim, storageClass, { metadata: { name: 'n1', labels } } as unknown as Node)
    assert.equal(plan.act, 'create')
    return plan.act === 'create' && plan.volume.spec.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values
  }
  assert.deepEqual(hostOf({ 'kubernetes.io/hostname': 'machine-1' }), ['machine-1'])
  assert.deepEqual(hostOf({}), ['n1'])
  assert.equal(planVolumeFor(claim, storageClass, undefined).act, 'reschedule')
})

test('STO-14 a data source that is neither claim nor snapshot is left to its populator', () => {
  const dataSourceRef = { apiGroup: 'example.com', kind: 'Dump', name: 'latest' }
  const claim = claimWith({ ...provisioned, 'volume.kubernetes.io/selected-node': 'n1' }, { dataSourceRef })
  assert.equal(planVolumeFor(claim, { metadata: {} } as StorageClass, undefined).act, 'leaveToPopulator')
})
