import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand as run } from '#testing/commandRun'
import { CommandError } from '../exitCodes.ts'

for (const words of [
  ['add', '--simulated', '1000000'],
  ['add', '--simulated', '0'],
  ['remove', '--simulated', 'all'],
])
  test(`ARC-13 nodes ${words.join(' ')} is refused`, async () => {
    const { error, calls } = await run(['nodes', ...words])
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.match(error.message, /expected a whole number from 1 to 10000/)
    assert.deepEqual(calls, [])
  })

for (const count of ['1000000', '10001', '-1', '1e3', 'many'])
  test(`ARC-13 up --simulated-nodes ${count} is refused before anything starts`, async () => {
    const { error, calls } = await run(['up', 'b', '--runtime', 'simulated', `--simulated-nodes=${count}`])
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.match(error.message, /--simulated-nodes .*: expected a whole number from 0 to 10000$/)
    assert.deepEqual(calls, [])
  })

test('ARC-13 up merges the kubeconfig of a cluster that serves without all of its nodes, and fails', async () => {
  const up = async () => {
    throw new CommandError('timeout', '5 of 6 nodes are ready', { serves: true })
  }
  const { error, calls, kubeconfig } = await run(['up', 'b'], { up })
  assert.ok(error instanceof CommandError && error.exit === 'timeout', String(error))
  assert.deepEqual(calls, ['remember b .kube/config'])
  assert.match(kubeconfig, /current-context: skiff-b/)
})
