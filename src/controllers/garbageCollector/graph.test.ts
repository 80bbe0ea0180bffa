import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { KubeObject } from '#api/machinery/meta'
import { blockingDependents, foregroundFinalizer, OwnerGraph, orphanFinalizer } from './graph.ts'

const object = (uid: string, owners: readonly string[] = [], more: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: uid,
    namespace: 'x',
    uid,
    ownerReferences: owners.map((owner) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: owner, uid: owner, blockOwnerDeletion: true })),
    ...more,
  },
})
const uids = (nodes: Iterable<{ uid: string }>) => [...nodes].map(({ uid }) => uid).sort()

test('CTL-14 an owner without an observed object is virtual until it appears', () => {
  const graph = new OwnerGraph()
  assert.deepEqual(uids(graph.observe(object('child', ['owner'])).attemptToDelete), ['child'])
  assert.deepEqual(uids(graph.virtualNodes()), ['owner'])
  graph.observe(object('owner'))
  assert.deepEqual(graph.virtualNodes(), [])
  assert.equal(graph.isOwned(graph.get('child') ?? assert.fail()), true)
})

test('CTL-14 when an owner goes, its dependents are looked at', () => {
  const graph = new OwnerGraph()
  graph.observe(object('owner'))
  graph.observe(object('a', ['owner']))
  graph.observe(object('b', ['owner']))
  assert.deepEqual(uids(graph.remove('owner').attemptToDelete), ['a', 'b'])
})

test('CTL-14 foreground: dependents first, then the owner as each of them goes', () => {
  const graph = new OwnerGraph()
  const leaving = { deletionTimestamp: 't', finalizers: [foregroundFinalizer] }
  graph.observe(object('owner'))
  graph.observe(object('a', ['owner']))
  assert.deepEqual(uids(graph.observe(object('owner', [], leaving)).attemptToDelete), ['a', 'owner'])
  assert.deepEqual(uids(blockingDependents(graph.get('owner') ?? assert.fail())), ['a'])
  assert.deepEqual(uids(graph.remove('a').attemptToDelete), ['owner'])
  assert.deepEqual(blockingDependents(graph.get('owner') ?? assert.fail()), [])
})

test('CTL-14 orphaning is asked for once, when the deletion begins', () => {
  const graph = new OwnerGraph()
  graph.observe(object('owner'))
  const leaving = { deletionTimestamp: 't', finalizers: [orphanFinalizer] }
  assert.deepEqual(uids(graph.observe(object('owner', [], leaving)).attemptToOrphan), ['owner'])
  assert.deepEqual(uids(graph.observe(object('owner', [], leaving)).attemptToOrphan), [])
})

test('CTL-14 the graph agrees with the objects after any history, and keeps nothing that is gone', () => {
  const uid = fc.constantFrom('a', 'b', 'c', 'd')
  fc.assert(
    fc.property(fc.array(fc.record({ uid, remove: fc.boolean(), owners: fc.uniqueArray(uid, { maxLength: 2 }) }), { maxLength: 30 }), (steps) => {
      const graph = new OwnerGraph()
      const model = new Map<string, readonly string[]>()
      for (const { uid, remove, owners } of steps) {
        if (remove) {
          graph.remove(uid)
          model.delete(uid)
        } else {
          graph.observe(object(uid, owners))
          model.set(uid, owners)
        }
      }
      for (const [uid, owners] of model) {
        for (const owner of owners) assert.equal(graph.get(owner)?.dependents.has(uid), true)
        const dependents = [...model].filter(([, owners]) => owners.includes(uid)).map(([dependent]) => dependent)
        assert.deepEqual(uids(graph.get(uid)?.dependents.values() ?? []), dependents.sort())
      }
      const named = new Set([...model.keys(), ...[...model.values()].flat()])
      assert.equal(graph.size, named.size)
    }),
  )
})

test('CTL-14 an owner in another namespace owns nothing, whichever of the two is seen first', () => {
  const elsewhere = { namespace: 'y' }
  const invalid = ({ invalid }: { invalid: readonly { dependent: { uid: string }; ownerUid: string }[] }) =>
    invalid.map(({ dependent, ownerUid }) => `${ownerUid} of ${dependent.uid}`)
  const first = new OwnerGraph()
  first.observe(object('owner', [], elsewhere))
  const after = first.observe(object('child', ['owner']))
  assert.deepEqual([invalid(after), uids(after.attemptToDelete)], [['owner of child'], ['child']])
  const second = new OwnerGraph()
  second.observe(object('child', ['owner']))
  const later = second.observe(object('owner', [], elsewhere))
  assert.deepEqual([invalid(later), uids(later.attemptToDelete)], [['owner of child'], ['child']])
  assert.deepEqual(invalid(second.observe(object('owner', [], elsewhere))), [])
})
