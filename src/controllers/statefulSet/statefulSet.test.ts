import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StatefulSet, StatefulSetSpec } from '#api/gen/types/apps.v1'
import type { PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { OwnerReference } from '#api/machinery/meta'
import { claimReferences, isClaimStale } from './claims.ts'
import { planStatefulSet, statefulSetStatus } from './plan.ts'

const now = Date.UTC(2026, 0, 1)
const set = (spec: Partial<StatefulSetSpec>): StatefulSet => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'web', namespace: 'n', uid: 'set' },
  spec: { selector: {}, serviceName: '', template: {}, ...spec },
  status: { replicas: 0 },
})
const pod = (ordinal: number, revision: string, ready = true): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `web-${ordinal}`, namespace: 'n', uid: `pod-${ordinal}`, labels: { 'controller-revision-hash': revision } },
  spec: { containers: [] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
})
const revisions = { current: 'a', update: 'b' }

const updates: { name: string; maxUnavailable?: number | string; partition?: number; policy?: string; pods: Pod[]; want: string[] }[] = [
  { name: 'one at a time by default, highest first', pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'a')], want: ['web-3'] },
  { name: 'several at once', maxUnavailable: 2, pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'a')], want: ['web-3', 'web-2'] },
  { name: 'a share, rounded down', maxUnavailable: '70%', pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'a')], want: ['web-3', 'web-2'] },
  { name: 'a small share is still one', maxUnavailable: '1%', pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'a')], want: ['web-3'] },
  { name: 'not below the partition', maxUnavailable: 4, partition: 3, pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'a')], want: ['web-3'] },
  {
    name: 'those that are down already count',
    maxUnavailable: 2,
    policy: 'Parallel',
    pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'b', false)],
    want: ['web-2'],
  },
  { name: 'none while too many are down', policy: 'Parallel', pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'b', false)], want: [] },
  { name: 'in order, the next step waits for all', maxUnavailable: 2, pods: [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'b', false)], want: [] },
]
for (const { name, pods, policy, want, ...rollingUpdate } of updates) {
  test(`CTL-05 maxUnavailable: ${name}`, () => {
    const object = set({ replicas: 4, updateStrategy: { type: 'RollingUpdate', rollingUpdate }, ...(policy ? { podManagementPolicy: policy } : {}) })
    const { create, remove } = planStatefulSet(object, pods, revisions, now, { maxUnavailable: true })
    assert.deepEqual([create, remove.map(({ metadata }) => metadata.name)], [[], want])
  })
}

const oneByOne: readonly (readonly [name: string, fields: Partial<StatefulSetSpec>, pods: Pod[], want: string[]])[] = [
  ['highest first, whatever maxUnavailable says', {}, [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'a')], ['web-3']],
  ['the next waits until the last is ready', {}, [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'b', false)], []],
  ['then the next goes', {}, [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'b')], ['web-2']],
  ['not below the partition', { updateStrategy: { rollingUpdate: { partition: 3 } } }, [pod(0, 'a'), pod(1, 'a'), pod(2, 'a'), pod(3, 'b')], []],
  [
    'in parallel, a broken one of before is replaced',
    { podManagementPolicy: 'Parallel' },
    [pod(0, 'a'), pod(1, 'a', false), pod(2, 'a'), pod(3, 'a', false)],
    ['web-3'],
  ],
]
for (const [name, fields, pods, want] of oneByOne) {
  test(`CTL-05 rolling update as v1.36 has it by default: ${name}`, () => {
    const object = set({ replicas: 4, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 3 } }, ...fields })
    const { remove } = planStatefulSet(object, pods, revisions, now)
    assert.deepEqual(
      remove.map(({ metadata }) => metadata.name),
      want,
    )
  })
}

test('CTL-05 a pod deleted under OnDelete is created again from the new revision; below a partition, from the old one', () => {
  const made = (updateStrategy: StatefulSetSpec['updateStrategy']) =>
    planStatefulSet(set({ replicas: 3, updateStrategy }), [pod(0, 'a'), pod(2, 'a')], revisions, now).create
  assert.deepEqual(made({ type: 'OnDelete' }), [{ ordinal: 1, updated: true }])
  assert.deepEqual(made({ type: 'RollingUpdate', rollingUpdate: { partition: 2 } }), [{ ordinal: 1, updated: false }])
})

test('CTL-05 an update is done when all replicas that are wanted are updated and ready, not when none is there', () => {
  const object = set({ replicas: 2 })
  assert.equal(statefulSetStatus(object, [], revisions, now).currentRevision, 'a')
  assert.equal(statefulSetStatus(object, [pod(0, 'b'), pod(1, 'b')], revisions, now).currentRevision, 'b')
})

const most = 2 ** 31 - 1
const bounded: readonly (readonly [
  name: string,
  fields: Partial<StatefulSetSpec>,
  pods: Pod[],
  want: readonly [create: number, first: number | undefined, remove: number],
])[] = [
  ['in order', { replicas: most }, [pod(0, 'a'), pod(1, 'a')], [1, 2, 0]],
  ['in parallel', { replicas: most, podManagementPolicy: 'Parallel' }, [pod(1, 'a')], [500, 0, 0]],
  ['above a start at the limit', { replicas: most, podManagementPolicy: 'Parallel', ordinals: { start: most } }, [], [1, most, 0]],
  ['with a partition at the limit', { replicas: most, updateStrategy: { rollingUpdate: { partition: most } } }, [pod(0, 'a')], [1, 1, 0]],
  ['with pods beyond the end', { replicas: 1, ordinals: { start: most } }, [pod(most, 'a'), pod(0, 'a')], [0, undefined, 1]],
]
for (const [name, fields, pods, want] of bounded) {
  test(`CTL-05 a plan for 2147483647 replicas is as small as one sync: ${name}`, () => {
    const plan = planStatefulSet(set(fields), pods, revisions, now)
    assert.deepEqual([plan.create.length, plan.create[0]?.ordinal, plan.remove.length], want)
  })
}

test('CTL-05 a pod whose ordinal has more than 32 bits belongs to no place, as upstream', () => {
  const { remove } = planStatefulSet(set({ replicas: 0 }), [pod(2 ** 31, 'a'), pod(most, 'a')], revisions, now)
  assert.deepEqual(
    remove.map(({ metadata }) => metadata.name),
    [`web-${most}`],
  )
})

const claim = (ownerReferences: OwnerReference[]): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data-web-0', namespace: 'n', ownerReferences },
  spec: {},
  status: {},
})
const setRef: OwnerReference = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'set', controller: true, blockOwnerDeletion: true }
const podRef: OwnerReference = { apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'pod-0', controller: true, blockOwnerDeletion: true }
const foreign: OwnerReference = { apiVersion: 'x/v1', kind: 'Backup', name: 'b', uid: 'x', controller: true }
const plain: OwnerReference = { apiVersion: 'x/v1', kind: 'Backup', name: 'b', uid: 'x' }

const owners: {
  name: string
  policy: [whenDeleted: string, whenScaled: string]
  scaledDown?: boolean
  has: OwnerReference[]
  want: OwnerReference[] | undefined
}[] = [
  { name: 'Retain has no owner', policy: ['Retain', 'Retain'], has: [], want: undefined },
  { name: 'Retain takes owners away', policy: ['Retain', 'Retain'], has: [plain, setRef], want: [plain] },
  { name: 'whenDeleted: the set', policy: ['Delete', 'Retain'], has: [], want: [setRef] },
  { name: 'whenDeleted: the set owns already', policy: ['Delete', 'Retain'], scaledDown: true, has: [setRef], want: undefined },
  { name: 'whenScaled: no owner while the pod is wanted', policy: ['Retain', 'Delete'], has: [podRef], want: [] },
  { name: 'whenScaled: the pod that goes', policy: ['Retain', 'Delete'], scaledDown: true, has: [], want: [podRef] },
  { name: 'both: the set, then the pod', policy: ['Delete', 'Delete'], scaledDown: true, has: [setRef], want: [podRef] },
  { name: 'an owner that does not control becomes one', policy: ['Delete', 'Retain'], has: [{ ...setRef, controller: false }], want: [setRef] },
  { name: 'another controller stays alone', policy: ['Delete', 'Retain'], has: [foreign, setRef], want: [foreign] },
  { name: 'another controller is not disturbed', policy: ['Delete', 'Retain'], has: [foreign], want: undefined },
  { name: 'a claim of a former set is left alone', policy: ['Delete', 'Retain'], has: [{ ...setRef, uid: 'old' }], want: undefined },
]
for (const { name, policy, scaledDown = false, has, want } of owners) {
  test(`CTL-05 persistentVolumeClaimRetentionPolicy: ${name}`, () => {
    const object = set({ replicas: 1, persistentVolumeClaimRetentionPolicy: { whenDeleted: policy[0], whenScaled: policy[1] } })
    assert.deepEqual(claimReferences(object, pod(0, 'a'), claim(has), scaledDown), want)
  })
}

test('CTL-05 persistentVolumeClaimRetentionPolicy: a pod waits for the claim that leaves with its predecessor', () => {
  const object = set({ persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' } })
  assert.equal(isClaimStale(object, 'web-0', claim([podRef])), true)
  assert.equal(isClaimStale(object, 'web-0', claim([setRef])), false)
  assert.equal(isClaimStale(set({}), 'web-0', claim([podRef])), false)
})
