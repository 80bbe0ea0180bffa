import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand } from '#testing/commandRun'
import { CommandError } from '../exitCodes.ts'

for (const [words, message] of [
  [['bundle', '--history', 'long'], '--history long: expected a duration such as 10m or 24h'],
  [['bundle', '--history', '-5m'], '--history -5m: expected a duration such as 10m or 24h'],
  [['bundle', '--offline', '--kubeconfig', 'x'], '--offline is for a local cluster, and --kubeconfig for another one'],
  [['bundle', 'show', '/does/not/exist.skiff'], '/does/not/exist.skiff does not exist'],
  [['bundle', 'fork', 'a.skiff', 'b', '--all'], "unknown option '--all'"],
  [['ui', 'a.skiff', '--name', 'a'], 'give a bundle or a cluster, not both'],
] as const) {
  test(`X18 skiff ${words.join(' ')} is refused with the reason`, async () => {
    const { error } = await runCommand([...words])
    assert.ok(error instanceof CommandError, String(error))
    assert.equal(error.message, message)
  })
}
