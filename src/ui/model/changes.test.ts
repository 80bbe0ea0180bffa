import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cordonPatch, type DrainablePod, drainPlan, restartPatch, revisionsOf, rollbackPatch, scalePatch } from './changes.ts'

const deployment = { metadata: { uid: 'd', annotations: { 'deployment.kubernetes.io/revision': '3' } } }
const replicaSet = (revision: number, owner = 'd', controller = true) => ({
  metadata: {
    ...{ name: `web-${revision}`, annotations: { 'deployment.kubernetes.io/revision': String(revision) } },
    ownerReferences: [{ uid: owner, kind: 'Deployment', name: 'web', controller }],
  },
  spec: { template: { metadata: { labels: { app: 'web', 'pod-template-hash': 'h' } }, spec: { containers: [{ name: 'c', image: `web:${revision}` }] } } },
})

test('ARC-16 the revisions of a Deployment are those of its own ReplicaSets, the newest first', () => {
  const found = revisionsOf(deployment, [replicaSet(1), replicaSet(10, 'other'), replicaSet(3), replicaSet(4, 'd', false)])
  assert.deepEqual(
    found.map(({ number, isCurrent, images }) => [number, isCurrent, images]),
    [
      [3, true, ['web:3']],
      [1, false, ['web:1']],
    ],
  )
})

test('ARC-16 a roll back writes the earlier template without the controller’s label, and only over the version that was seen', () => {
  const [revision] = revisionsOf(deployment, [replicaSet(1)])
  assert.ok(revision)
  assert.deepEqual(rollbackPatch(revision, '7'), [
    { op: 'test', path: '/metadata/resourceVersion', value: '7' },
    { op: 'replace', path: '/spec/template', value: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'web:1' }] } } },
  ])
})

test('ARC-16 scaling, restarting and cordoning are kubectl’s patches', () => {
  assert.deepEqual(scalePatch(3), { spec: { replicas: 3 } })
  assert.deepEqual([cordonPatch(true), cordonPatch(false)], [{ spec: { unschedulable: true } }, { spec: { unschedulable: null } }])
  assert.match(JSON.stringify(restartPatch('2026-01-01T00:00:00Z')), /"kubectl.kubernetes.io\/restartedAt":"2026-01-01T00:00:00Z"/)
})

test('ARC-16 a drain leaves pods of DaemonSets and static pods, and warns of pods that do not come back', () => {
  const owned = (kind: string) => [{ kind, uid: 'u', name: 'o', controller: true }]
  const pods: DrainablePod[] = [
    { metadata: { name: 'web', ownerReferences: owned('ReplicaSet') } },
    { metadata: { name: 'alone' } },
    { metadata: { name: 'agent', ownerReferences: owned('DaemonSet') } },
    { metadata: { name: 'old-agent', ownerReferences: owned('DaemonSet') }, status: { phase: 'Failed' } },
    { metadata: { name: 'static', annotations: { 'kubernetes.io/config.mirror': 'h' } } },
    { metadata: { name: 'ending', deletionTimestamp: '2026-01-01T00:00:00Z' } },
    { metadata: { name: 'cache', ownerReferences: owned('ReplicaSet') }, spec: { volumes: [{ emptyDir: {} }] } },
  ]
  const { evicted, left, warnings } = drainPlan(pods)
  assert.deepEqual(
    evicted.map(({ metadata }) => metadata.name),
    ['web', 'alone', 'old-agent', 'cache'],
  )
  assert.deepEqual(
    left.map(({ pod, reason }) => [pod.metadata.name, reason]),
    [
      ['agent', 'of a DaemonSet'],
      ['static', 'a static pod of the node'],
      ['ending', 'is ending already'],
    ],
  )
  assert.deepEqual(warnings, ['1 pods have no controller and will not be created again: alone', '1 pods lose the data of an emptyDir volume: cache'])
})
