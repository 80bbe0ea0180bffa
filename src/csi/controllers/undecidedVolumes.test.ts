/** How many names of volumes are kept while nodes do not answer, and for how long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GrpcError } from '#grpc/grpcError'
import { UndecidedVolumes } from './undecidedVolumes.ts'

test('STO-10 a new volume is refused while too many are undecided, and the undecided ones keep their nodes', () => {
  const undecided = new UndecidedVolumes<string>(() => 0, { maxNames: 2, forgottenAfterMs: 1000 })
  for (const name of ['first', 'second']) {
    assert.equal(undecided.nodeOf(name), undefined)
    undecided.add(name, 'a')
  }
  assert.throws(
    () => undecided.nodeOf('third'),
    ({ code, message }: GrpcError) => code === 'UNAVAILABLE' && message.includes('2 volumes wait for the answer of a node'),
  )
  assert.equal(undecided.nodeOf('first'), 'a')
  undecided.delete('first')
  assert.equal(undecided.nodeOf('third'), undefined)
})

test('STO-10 a name that is not asked for is forgotten, one that is asked for again stays', () => {
  let now = 0
  const undecided = new UndecidedVolumes<string>(() => now, { maxNames: 2, forgottenAfterMs: 1000 })
  for (const name of ['given up', 'repeated']) undecided.add(name, 'a')
  now = 900
  undecided.add('repeated', 'a')
  now = 1000
  assert.equal(undecided.nodeOf('new'), undefined)
  assert.deepEqual([undecided.nodeOf('given up'), undecided.nodeOf('repeated')], [undefined, 'a'])
})
