import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand as run } from '#testing/commandRun'
import { CommandError } from '../exitCodes.ts'

test('AUT-05 nodegroup create has limits from 0 to 100, and the least size', async () => {
  const group = { name: 'small', min: 0, max: 100, size: 0, like: {} }
  assert.deepEqual((await run(['nodegroup', 'create', 'small'])).calls, [`create group of a ${JSON.stringify(group)}`])
  const { calls } = await run(['nodegroup', 'create', 'small', '--min', '2', '--max', '5', '--name', 'a', '-q'])
  assert.deepEqual(calls, [`create group of a ${JSON.stringify({ ...group, min: 2, max: 5, size: 2 })}`])
})

test('AUT-05 nodegroup scale, delete and ls take the cluster by --name', async () => {
  assert.deepEqual((await run(['nodegroup', 'scale', 'small', '3', '--name', 'a'])).calls, ['scale small of a to 3'])
  assert.deepEqual((await run(['nodegroup', 'delete', 'small', '--name', 'a'])).calls, ['delete small of a'])
  assert.equal((await run(['nodegroup', 'ls', '--name', 'a'])).stdout, 'NODEGROUP   MIN   MAX   SIZE   READY\nsmall       0     5     2      1\n')
  assert.deepEqual(JSON.parse((await run(['nodegroup', 'ls', '-o', 'json'])).stdout), [
    { name: 'small', min: 0, max: 5, size: 2, ready: 1, nodes: ['small-1', 'small-2'] },
  ])
})

for (const [words, want] of [
  [['create', 'Small'], /"Small" cannot be the name of a node group: a lowercase RFC 1123 label/],
  [['create', 'x'.repeat(41)], /it has more than 40 characters/],
  [['create', 'small', '--max', '10001'], /--max 10001: expected a whole number from 1 to 10000/],
  [['create', 'small', '--min', '6', '--max', '5'], /--min 6: expected a whole number from 0 to 5/],
  [['create', 'small', '--min', '1', '--max', '5', '--size', '0'], /--size 0: expected a whole number from 1 to 5/],
  [['scale', 'small', '-q', 'many'], /SIZE many: expected a whole number/],
  [['scale', 'small', '3', 'a'], /"a" is a word too many/],
] as const)
  test(`AUT-05 nodegroup ${words.join(' ')} is refused`, async () => {
    const { error, calls } = await run(['nodegroup', ...words])
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.match(error.message, want)
    assert.deepEqual(calls, [])
  })
