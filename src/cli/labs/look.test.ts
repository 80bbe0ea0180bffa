import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '#client/client'
import { digestOf, Look } from './look.ts'

/** A look at a namespace with these annotations. */
const lookAt = (annotations: Record<string, string>) =>
  new Look({ of: () => ({ get: async () => ({ metadata: { annotations } }) }) } as unknown as Client, 'lab-01')

test('X20 an answer is right when it is the one of the cluster, and no answer is while the cluster has none', async () => {
  assert.equal((await lookAt({ node: 'n1' }).answers('node', 'n1')).passed, true)
  for (const [annotations, right] of [
    [{}, 'n1'],
    [{ node: 'n2' }, 'n1'],
    [{ node: '' }, undefined],
    [{ node: 'undefined' }, undefined],
  ] as const)
    assert.equal((await lookAt(annotations).answers('node', right)).passed, false, JSON.stringify(annotations))
})

test('X20 an answer that is known by its digest is right with that digest alone', async () => {
  const digest = digestOf('plum')
  const passed = async (annotations: Record<string, string>, wanted: string | undefined) => (await lookAt(annotations).answersDigest('fruit', wanted)).passed
  assert.deepEqual(
    [
      await passed({ fruit: 'plum' }, digest),
      await passed({ fruit: '' }, digest),
      await passed({ fruit: 'fig' }, digest),
      await passed({ fruit: 'plum' }, undefined),
    ],
    [true, false, false, false],
  )
})
