import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { selectorOfMap } from '#api/machinery/labelSelector'
import type { KubeObject } from '#api/machinery/meta'
import { realClock } from '#testing/realClock'
import { decide } from './claim.ts'
import { podsToDelete } from './deletionRank.ts'
import { slowStartBatch } from './podControl.ts'
import { createWriteTracker } from './writeTracker.ts'

const now = Date.UTC(2026, 0, 1)
const pod = (name: string, more: { node?: string; phase?: string; ready?: string; cost?: string; restarts?: number; created?: string } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    uid: name,
    creationTimestamp: more.created ?? '2025-12-31T00:00:00Z',
    ...(more.cost ? { annotations: { 'controller.kubernetes.io/pod-deletion-cost': more.cost } } : {}),
  },
  spec: { containers: [], ...(more.node === '' ? {} : { nodeName: more.node ?? 'n' }) },
  status: {
    phase: more.phase ?? 'Running',
    ...(more.ready === '' ? {} : { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: more.ready ?? '2025-12-31T00:00:00Z' }] }),
    containerStatuses: [{ name: 'c', ready: true, image: '', imageID: '', restartCount: more.restarts ?? 0 }],
  },
})

const pairs: { name: string; goes: Pod; stays: Pod; related?: Pod[] }[] = [
  { name: 'unassigned before assigned', goes: pod('z', { node: '' }), stays: pod('a') },
  { name: 'pending before running', goes: pod('z', { phase: 'Pending' }), stays: pod('a', { ready: '' }) },
  { name: 'not ready before ready', goes: pod('z', { ready: '' }), stays: pod('a', { cost: '-5' }) },
  { name: 'the lower deletion cost', goes: pod('z', { cost: '-1' }), stays: pod('a') },
  {
    name: 'the one with company on its node',
    goes: pod('z', { node: 'full' }),
    stays: pod('a'),
    related: [pod('z', { node: 'full' }), pod('y', { node: 'full' }), pod('a')],
  },
  { name: 'ready for a shorter time, by magnitude', goes: pod('z', { ready: '2025-12-31T23:59:00Z' }), stays: pod('a') },
  { name: 'more restarts', goes: pod('z', { restarts: 3 }), stays: pod('a') },
  { name: 'the younger', goes: pod('z', { created: '2025-12-31T23:59:00Z' }), stays: pod('a') },
]
for (const { name, goes, stays, related = [] } of pairs) {
  test(`CTL-03 deletion order: ${name}`, () => assert.deepEqual(podsToDelete([stays, goes], related, 1, now), [goes]))
}

test('CTL-03 batches double, and stop at the first that fails', async () => {
  let calls = 0
  const count = (failAt: number) =>
    slowStartBatch(realClock, 20, async () => {
      if (++calls === failAt) throw new Error('refused')
    })
  assert.deepEqual(await count(-1), { successes: 20, error: undefined })
  calls = 0
  assert.equal((await count(3)).successes, 2)
  assert.equal(calls, 3)
})

const owner = (more: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'o', uid: 'o', namespace: 'x', ...more },
})
const owned = (labels: Record<string, string>, uid: string | undefined, more: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'p',
    namespace: 'x',
    labels,
    ...(uid ? { ownerReferences: [{ apiVersion: '', kind: '', name: '', uid, controller: true }] } : {}),
    ...more,
  },
})
const claims: { name: string; object: KubeObject; by?: KubeObject; want: ReturnType<typeof decide> }[] = [
  { name: 'mine and matching', object: owned({ a: '1' }, 'o'), want: 'keep' },
  { name: 'mine, no longer matching', object: owned({}, 'o'), want: 'release' },
  { name: 'mine, not matching, but I am going', object: owned({}, 'o'), by: owner({ deletionTimestamp: 't' }), want: 'ignore' },
  { name: 'an object of another controller', object: owned({ a: '1' }, 'other'), want: 'ignore' },
  { name: 'an orphan that matches', object: owned({ a: '1' }, undefined), want: 'adopt' },
  { name: 'an orphan that is being deleted', object: owned({ a: '1' }, undefined, { deletionTimestamp: 't' }), want: 'ignore' },
  { name: 'an orphan in another namespace', object: owned({ a: '1' }, undefined, { namespace: 'y' }), want: 'ignore' },
]
for (const { name, object, by = owner(), want } of claims)
  test(`CTL-03 claim: ${name}`, () => assert.equal(decide(object, by, selectorOfMap({ a: '1' })), want))

test('a cache is current once it shows every write, or the object is gone', () => {
  const tracker = createWriteTracker()
  const object = (uid: string, resourceVersion: string): KubeObject => ({ apiVersion: '', kind: '', metadata: { name: uid, uid, resourceVersion } })
  const cache = new Map<string, KubeObject>()
  const current = () => tracker.isCurrent('g', (key) => cache.get(key))
  tracker.wrote('g', object('a', '9'))
  tracker.wrote('g', object('b', '10'))
  assert.equal(current(), false)
  cache.set('a', object('a', '8')).set('b', object('b', '10'))
  assert.equal(current(), false)
  cache.set('a', object('a', '11'))
  assert.equal(current(), true)
  tracker.removed('g', object('a', '11'))
  assert.equal(current(), false)
  tracker.sawDelete(object('a', '12'))
  assert.equal(current(), true)
})
