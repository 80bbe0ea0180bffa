import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { Indexer } from './indexer.ts'
import type { TallyPlace } from './tally.ts'

const object = (name: string, labels: Readonly<Record<string, string>>): Frozen<KubeObject> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'x', name, labels },
})
const byColour = ({ metadata }: Frozen<KubeObject>): TallyPlace | undefined => {
  if (metadata.labels?.bad) throw new Error('no colour')
  return metadata.labels?.colour ? { group: metadata.namespace ?? '', kind: metadata.labels.colour } : undefined
}
const countsOf = (indexer: Indexer<KubeObject>) => [...indexer.tally('colour', 'x')].map(({ count, one }) => `${count} ${one.metadata.labels?.colour}`).sort()

test('CGO-03 a tally counts the objects of a store by kind, those included that were there before it', () => {
  const indexer = new Indexer<KubeObject>()
  indexer.set(object('a', { colour: 'red' }))
  indexer.addTallies({ colour: byColour })
  indexer.addTallies({ colour: byColour })
  indexer.set(object('b', { colour: 'red' }))
  indexer.set(object('c', { colour: 'blue' }))
  indexer.set(object('d', {}))
  assert.deepEqual(countsOf(indexer), ['1 blue', '2 red'])
  indexer.set(object('a', { colour: 'blue' }))
  indexer.set(object('b', {}))
  assert.deepEqual(countsOf(indexer), ['2 blue'])
  for (const name of ['a', 'b', 'c', 'd']) indexer.delete(`x/${name}`)
  assert.deepEqual(countsOf(indexer), [])
})

test('CGO-03 a tally refuses a second function of its name, and an unknown name is refused', () => {
  const indexer = new Indexer<KubeObject>()
  indexer.addTallies({ colour: byColour })
  assert.throws(() => indexer.addTallies({ colour: () => undefined }), /conflict/)
  assert.throws(() => indexer.tally('shape', 'x'), /does not exist/)
})

test('CGO-03 an object that a tally fails on is kept and not counted, and the fault is reported once for each version', () => {
  const faults: string[] = []
  const indexer = new Indexer<KubeObject>({}, (error, name, { metadata }) => faults.push(`${name} ${metadata.name} ${(error as Error).message}`))
  indexer.addTallies({ colour: byColour })
  indexer.set(object('a', { colour: 'red' }))
  indexer.set(object('a', { bad: '1' }))
  assert.deepEqual(countsOf(indexer), [])
  indexer.set(object('a', { colour: 'red' }))
  assert.deepEqual(countsOf(indexer), ['1 red'])
  assert.deepEqual(faults, ['colour a no colour'])
})
