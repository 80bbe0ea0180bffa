import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { Indexer } from './indexer.ts'

const object = (namespace: string, name: string, labels: Record<string, string> = {}): Frozen<KubeObject> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace, name, labels },
})
const byLabel = (pod: Frozen<KubeObject>) => Object.entries(pod.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)

test('CGO-03 the indexer agrees with a full scan after any history', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const step = fc.record({ remove: fc.boolean(), namespace: fc.constantFrom('x', 'y'), name, labels: fc.dictionary(fc.constantFrom('k', 'l'), name) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const indexer = new Indexer<KubeObject>({ label: byLabel })
      const model = new Map<string, Frozen<KubeObject>>()
      for (const { remove, namespace, name, labels } of steps) {
        const changed = object(namespace, name, labels)
        assert.equal(remove ? indexer.delete(keyOf(changed)) : indexer.set(changed), model.get(keyOf(changed)))
        if (remove) model.delete(keyOf(changed))
        else model.set(keyOf(changed), changed)
      }
      assert.deepEqual(indexer.list(), [...model.values()])
      const values = new Set([...model.values()].flatMap(byLabel))
      assert.deepEqual(new Set(indexer.indexValues('label')), values)
      for (const value of values) {
        const wanted = [...model.values()].filter((pod) => byLabel(pod).includes(value))
        assert.deepEqual(new Set(indexer.byIndex('label', value)), new Set(wanted))
      }
    }),
    { numRuns: 50 },
  )
})

test('CGO-03 indexes are added late, conflicts and unknown names are refused', () => {
  const indexer = new Indexer<KubeObject>()
  indexer.set(object('x', 'a', { k: 'v' }))
  indexer.addIndexers({ label: byLabel })
  indexer.addIndexers({ label: byLabel })
  assert.equal(indexer.byIndex('label', 'k=v').length, 1)
  assert.equal(indexer.byIndex('namespace', 'x').length, 1)
  assert.throws(() => indexer.addIndexers({ label: () => [] }), /conflict/)
  assert.throws(() => indexer.byIndex('nothing', ''), /does not exist/)
})

test('CGO-03 an object that an index function fails on is kept, indexed elsewhere, replaced and removed', () => {
  const faults: string[] = []
  const failing = (pod: Frozen<KubeObject>) => {
    if (pod.metadata.labels?.bad) throw new Error('no value')
    return byLabel(pod)
  }
  const indexer = new Indexer<KubeObject>({ failing }, (error, index, { metadata }) => faults.push(`${index} ${metadata.name} ${(error as Error).message}`))
  indexer.set(object('x', 'a', { bad: '1' }))
  indexer.set(object('x', 'b', { k: 'v' }))
  indexer.addIndexers({ late: failing })
  assert.deepEqual(faults, ['failing a no value', 'late a no value'])
  assert.deepEqual([indexer.byIndex('namespace', 'x').length, indexer.indexValues('failing'), indexer.indexValues('late')], [2, ['k=v'], ['k=v']])
  indexer.set(object('x', 'b', { bad: '1' }))
  indexer.set(object('x', 'a', { k: 'w' }))
  assert.deepEqual([indexer.indexValues('failing'), indexer.byIndex('late', 'k=w').map(({ metadata }) => metadata.name)], [['k=w'], ['a']])
  for (const key of ['x/a', 'x/b']) assert.equal(indexer.delete(key)?.kind, 'Pod')
  assert.deepEqual([indexer.size, indexer.indexValues('failing')], [0, []])
})
