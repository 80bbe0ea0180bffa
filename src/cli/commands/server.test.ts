import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand as run } from '#testing/commandRun'

for (const { words, calls, out } of [
  { words: 'server install a', calls: ['install a'], out: /^$/ },
  { words: 'server install --dry-run', calls: [], out: /^\[Unit\]\nDescription=a\n$/ },
  { words: 'server uninstall a', calls: ['uninstall a'], out: /^$/ },
]) {
  test(`HA-01 skiff ${words} asks for it`, async () => {
    const done = await run(words.split(' '))
    assert.deepEqual([done.error, done.calls], [undefined, calls])
    assert.match(done.stdout, out)
  })
}
