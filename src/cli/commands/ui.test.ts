import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand } from '#testing/commandRun'
import { CommandError } from '../exitCodes.ts'

for (const [words, exit, message] of [
  [['--port', '70000'], 'usage', '--port 70000: expected 0 to 65535'],
  [['--port', 'x'], 'usage', '--port x: expected 0 to 65535'],
  [['--user', 'jane'], 'usage', '--user needs --kubeconfig'],
  [['--name', 'b'], 'notFound', 'there is no cluster "b"'],
  [['--name', 'a', '--kubeconfig', '/f'], 'usage', 'give the cluster or --kubeconfig, not both'],
  [[], 'internal', /^the page cannot be served: .* no index\.html|ENOENT/],
] as const) {
  test(`ARC-16 skiff ui ${words.join(' ')} fails with ${exit}`, async () => {
    const { error } = await runCommand(['ui', ...words])
    assert.ok(error instanceof CommandError, String(error))
    assert.equal(error.exit, exit)
    if (typeof message === 'string') assert.equal(error.message, message)
    else assert.match(error.message, message)
  })
}
